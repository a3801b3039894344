import pytest
from django.contrib.contenttypes.management import create_contenttypes
from django.db.models.signals import post_migrate

from tests import people


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup):
    """After each test with commits Django would fill two tables of its own that nothing here reads."""
    assert post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    assert post_migrate.disconnect(create_contenttypes)


@pytest.fixture
def cast(db):
    return people.cast()


@pytest.fixture
def committed_cast(transactional_db):
    """For tests where commits, threads or on_commit matter."""
    return people.cast()


@pytest.fixture(autouse=True)
def kept_files(settings, tmp_path):
    """Payloads and outputs of a test are its own."""
    stores = {name: dict(store) for name, store in settings.STORAGES.items()}
    for name in ("blobs", "outputs"):
        stores[name] = {**stores[name], "OPTIONS": {**stores[name]["OPTIONS"], "location": tmp_path / name}}
    settings.STORAGES = stores


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
