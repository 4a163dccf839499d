"""Every task by its text, with the settings it names in `samples`, and one compiled sampler for each."""

import pytest
from task_checks import every_text, sampler

from posenc import tasks


def pytest_generate_tests(metafunc):
    if "text" in metafunc.fixturenames:
        metafunc.parametrize("text", every_text())
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", tasks.names())


@pytest.fixture
def draw(text):
    return sampler(text)
