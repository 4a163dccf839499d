"""Names, shapes and types of every scheme's parameters at fixed sizes, as `parameters.json` records them, and which of
them all layers share.

python -m tests.contract.parameters        # write the file anew, after a change that is meant
"""

import json
from pathlib import Path

import jax

import posenc
from posenc.core.scheme import SCHEMES

FILE = Path(__file__).with_name("parameters.json")
DIMS = posenc.Dims(width=32, heads=4, head=8, trained=16, longest=64)


def snapshot(name: str) -> dict[str, dict[str, str]]:
    """For each text of a scheme, the type and shape of each parameter by its path."""
    cls, found = SCHEMES.find(name), {}
    for settings in ({}, *cls.samples):
        scheme = posenc.bind(cls(**settings), DIMS)
        made = jax.eval_shape(lambda key, s=scheme: posenc.init(s, key, DIMS), jax.random.key(0))
        paths = found[posenc.spec(cls(**settings))] = {}
        for part, shared in zip(posenc.split(scheme, made), (" shared", ""), strict=True):
            for path, a in jax.tree_util.tree_leaves_with_path(part):
                paths["/".join(k.key for k in path)] = f"{a.dtype}{list(a.shape)}{shared}"
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: snapshot(name) for name in posenc.names()}, indent=1) + "\n")
