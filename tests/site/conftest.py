"""The whole site, made once in a session, where the extra `docs` is installed."""

import pytest

from posenc.lab.site import build


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the site."""
    try:
        build.check_packages()
    except ValueError as error:
        pytest.skip(str(error))
    target = tmp_path_factory.mktemp("site") / "site"
    build.build(target)
    return target
