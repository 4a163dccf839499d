"""The name under which models are public: `posenc.models` is `posenc.lab.models`."""

from posenc.lab.models import *  # noqa: F403
