"""Which database the settings name, from the environment alone."""

import pytest

from console import database
from console.state import Unusable


def of(tmp_path, url=""):
    return database.of(tmp_path, {database.URL: url} if url else {})


def test_without_an_address_it_is_a_file_with_one_writer(tmp_path):
    found = of(tmp_path)
    assert found["NAME"] == tmp_path / "db.sqlite3"
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert database.writers(found) == 1


def test_every_part_of_an_address_arrives(tmp_path):
    found = of(tmp_path, "postgresql://us%40er:p%2Fw@db.test:5433/na%20me?sslmode=require&connect_timeout=3")
    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("us@er", "p/w", "na me")
    assert (found["HOST"], found["PORT"]) == ("db.test", "5433")
    assert found["OPTIONS"] == {"sslmode": "require", "connect_timeout": "3"}
    assert database.writers(found) > 1


def test_a_socket_is_a_folder_in_place_of_a_host(tmp_path):
    found = of(tmp_path, "postgres:///sandgate?host=/run/postgresql")
    assert (found["HOST"], found["PORT"], found["NAME"], found["OPTIONS"]) == ("/run/postgresql", "", "sandgate", {})


@pytest.mark.parametrize(
    "url",
    ["mysql://u:secret@h/n", "postgresql://u:secret@h/", "secret", "postgresql://u:secret@h:port/n", "sqlite:///a"],
)
def test_what_is_no_address_is_refused_and_not_printed(tmp_path, url):
    with pytest.raises(Unusable, match="SANDGATE_DATABASE_URL") as refused:
        of(tmp_path, url)
    assert "secret" not in str(refused.value)
