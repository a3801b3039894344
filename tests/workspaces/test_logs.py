"""What is logged: the request that caused it, and never what a variable held."""

import logging.config

import structlog
from django.conf import settings


def logged(capsys, act) -> str:
    logging.config.dictConfig(settings.LOGGING)
    act()
    return capsys.readouterr().err


def test_a_line_names_its_request(capsys):
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        assert "request_id=r-1" in logged(capsys, lambda: logging.getLogger("sandgate.x").warning("hello"))


def test_a_traceback_shows_no_variables(capsys):
    def act() -> None:
        try:
            fail("sg_key_" + "S3CR3T")
        except ValueError:
            logging.getLogger("sandgate.x").exception("it failed")

    said = logged(capsys, act)
    assert "ValueError" in said
    assert "sg_key_S3CR3T" not in said


def fail(secret: str) -> None:
    raise ValueError(len(secret))
