"""What transformers builds of every config of `walk`: `python -m tests.huggingface.record_walk`.

Needs torch and transformers, as `record` does, whose recording it starts from. It writes walked.json. A config counts
as read if the attention weights of every layer of its model are those of the scheme.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from typing import Any

import torch
import transformers

from posenc.huggingface import facts as facts_of
from posenc.huggingface import from_hf
from posenc.huggingface.facts import Facts
from posenc.naming import spec
from tests.huggingface import walk
from tests.huggingface.compare import TOLERANCE
from tests.huggingface.models import config_of
from tests.huggingface.record import VERSION, Differs, beside, judge, layers


def built(kind: str, config: dict[str, Any], facts: Facts) -> Any:
    """The attentions of a config's model; None where transformers cannot make or run it."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            plain = beside(kind, config, facts)
            return layers(config_of(kind, config), plain)[0] or None
    except Exception:  # noqa: BLE001  what transformers does not run has no right answer
        return None


def outcome(kind: str, config: dict[str, Any], facts: Facts, done: dict[Any, Any]) -> str | int:
    """The scheme that a config is read as, compared with its model; else `walk.UNBUILT` or `walk.REFUSED`."""
    if (found := built(kind, config, facts)) is None:
        return walk.UNBUILT
    try:
        scheme = from_hf(config)
    except ValueError:
        return walk.REFUSED
    if (worst := judge(scheme, found, done)[0]) > TOLERANCE:
        raise Differs(f"{kind} is read as {spec(scheme)!r}, and its weights differ by {worst:.2g}")
    return spec(scheme)


def main() -> None:
    """Record the model types named, or all."""
    if transformers.__version__ != VERSION:
        sys.exit(f"This records transformers {VERSION}; {transformers.__version__} is installed.")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    found, sizes = {} if len(sys.argv) == 1 else walk.read(), walk.sizes()
    for kind in sys.argv[1:] or facts_of.types():
        facts, done = facts_of.types()[kind], {}
        found[kind] = [outcome(kind, config, facts, done) for _, config in walk.walk(sizes[kind], facts)]
        print(kind, len(found[kind]), flush=True)
    walk.write(found, f"transformers {VERSION}, torch {torch.__version__.partition('+')[0]}")


if __name__ == "__main__":
    main()
