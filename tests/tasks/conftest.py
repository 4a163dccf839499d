"""Every task by its text, by night with the settings it names in `samples`, and one compiled sampler for each."""

import pytest

from posenc.lab import tasks
from tests.night import by_day
from tests.tasks.task_checks import every_text, sampler


def pytest_generate_tests(metafunc):
    if "draw" in metafunc.fixturenames:  # one after another, since what is compiled for a text serves all its tests
        metafunc.parametrize("text", by_day(every_text(), tasks.names()), scope="module")
    elif "text" in metafunc.fixturenames:
        metafunc.parametrize("text", every_text())
    if "sampled" in metafunc.fixturenames:
        metafunc.parametrize("sampled", by_day(every_text(), tasks.names()))
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", tasks.names())


@pytest.fixture(scope="module")
def draw(text):
    found = sampler(text)
    yield found
    found.kept.clear()
