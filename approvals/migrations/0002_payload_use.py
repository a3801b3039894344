"""Which action uses which kept content. For actions from before, it is read from what they say."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def fill(apps: Any, schema_editor: Any) -> None:
    uses = apps.get_model("approvals", "PayloadUse").objects
    for action in apps.get_model("approvals", "Action").objects.iterator():
        # What would be replaced may have been kept, and its size is not in the row: it only has to be named.
        found = {sha256: 0 for sha256 in action.bases.values() if sha256}
        for value in action.arguments.values():
            if isinstance(value, dict) and set(value) == {"sha256", "size"} and isinstance(value["size"], int):
                found[value["sha256"]] = value["size"]
        for sha256, size in found.items():
            uses.create(action=action, sha256=sha256, size=size)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="PayloadUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(db_index=True, max_length=64)),
                ("size", models.PositiveBigIntegerField()),
                (
                    "action",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payload_uses",
                        to="approvals.action",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="payloaduse",
            constraint=models.UniqueConstraint(fields=("action", "sha256"), name="payload_use_once"),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
