import pytest

from sandboxes.engine import EngineConfig
from tests.gvisor import leavings
from tests.gvisor.engines import Bench, engine_var, new_config


def pytest_collection_modifyitems(items):
    for item in items:
        if "/tests/gvisor/" in str(item.path):
            item.add_marker(pytest.mark.gvisor)


@pytest.fixture(scope="session", autouse=True)
def nothing_stays():
    """Of this run, however it ends; and of one before it that was killed."""
    host = EngineConfig.load(engine_var(), "").docker_host
    leavings.clear(host, mine=False)
    yield
    leavings.clear(host, mine=True)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """An engine that has been started; what it made is gone at the end."""
    bench = Bench(new_config(tmp_path_factory.mktemp("var")))
    try:
        bench.do(bench.engine.start())
        yield bench
    finally:
        bench.close()
    assert bench.left_over() == []


@pytest.fixture(scope="module")
def box(bench):
    """One sandbox for a module's tests, which leave it as they found it or use names of their own."""
    return bench.create(env={"FROM_SANDBOX": "yes"})


@pytest.fixture
def fresh_box(bench):
    """A sandbox that the test may break."""
    box = bench.create()
    yield box
    bench.do(bench.engine.remove(box.container_id))
