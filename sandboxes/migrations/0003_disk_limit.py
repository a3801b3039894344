from django.db import migrations, models
from django.db.models import Q

REASONS = ("deleted", "idle", "max_lifetime", "oom", "process_limit", "disk_limit", "crashed", "host_lost", "halted")


class Migration(migrations.Migration):
    dependencies = [("sandboxes", "0002_engine")]

    operations = [
        migrations.RemoveConstraint(model_name="sandbox", name="sandbox_end_has_reason"),
        migrations.AddConstraint(
            model_name="sandbox",
            constraint=models.CheckConstraint(
                condition=~Q(status="ended") | Q(ended_reason__in=REASONS), name="sandbox_end_has_reason"
            ),
        ),
    ]
