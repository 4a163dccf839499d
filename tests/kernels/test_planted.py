"""Tiles that are wrong are noticed: each fault is written into the kernel, and it must then differ from the square."""

import pytest

from tests.kernels.test_equal import Problem, small_blocks  # noqa: F401  # the second is a fixture
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture

TILED, LAYOUT = "posenc.attention.kernels.tiled:", "posenc.attention.kernels.layout:"

FAULTS = {
    "a tile is skipped": Fault(LAYOUT + "over_keys", "jnp.int32(0), jnp.int32(count)", "jnp.int32(1), jnp.int32(count)",
                               "nope", "tiled"),
    "what was summed is not rescaled": Fault(TILED + "_rows", "out * shrink[..., None]", "out", "nope", "tiled"),
    "the maximum is that of the first tile": Fault(
        TILED + "_rows", "new = jnp.maximum(top, s.max(-1))", "new = jnp.where(top > -jnp.inf, top, s.max(-1))",
        "nope", "tiled",
    ),
    "the tile on the diagonal is not masked": Fault(
        TILED + "_Tile.hidden", "jnp.where(self.visible, s, -jnp.inf)", "s", "nope", "tiled"
    ),
    "a tile that the mask cuts is taken for an open one": Fault(
        LAYOUT + "over_keys", "(first + right + 1) // cols", "(first + rows + right) // cols", "nope", "tiled"
    ),
    "the gradient of the bias is dropped": Fault(
        "posenc.attention.kernels.band:band", "return jax.vmap(score_head)",
        "return (lambda *a: jax.lax.stop_gradient(jax.vmap(score_head)(*a)))", "t5", "tiled",
    ),
    "the band is a diagonal off": Fault(LAYOUT + "corner", "n * tiling.rows -", "n * tiling.rows + 1 -", "t5", "tiled"),
    "the rows of a band run backwards": Fault("posenc.attention.kernels.band:_lines", "w[:, ::-1]", "w", "t5", "tiled"),
    "the diagonals of a strip are added where the next one lies": Fault(
        "posenc.attention.kernels.band:diagonals", "rows - (n + 1) * high", "n * high", "t5", "tiled"
    ),
    "a key's gradient lands at another tile": Fault(
        LAYOUT + "added", "at=m * tiling.cols", "at=n * tiling.cols", "nope", "tiled"
    ),
    "softmax's share of the gradient is left out": Fault(
        TILED + "_pulled", "p * (dp - mean[..., None])", "p * dp", "nope", "tiled"
    ),
    "what is added to values has no gradient": Fault(
        TILED + "_pulled", "read = jax.tree.map(jnp.add, read, read_more)", "pass", "shaw", "tiled"
    ),
    "heads are numbered from 0 in each group": Fault(
        TILED + "_Tile._each", "jnp.arange(tiling.heads).reshape(a.shape[:2])",
        "jnp.arange(tiling.heads).reshape(a.shape[:2]) * 0", "alibi + fire", "tiled",
    ),
    "the last rows are cut off": Fault("posenc.attention.kernels.rows:mix", "[:count]", "[-count:]", "cope", "rows"),
}  # fmt: skip


def loud(fault):
    """A problem whose scores overflow where the maximum is not taken off them."""
    problem = Problem(fault.scheme)
    problem.arrays[0] *= 3000.0
    return problem


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, plant, x64):
    fault = FAULTS[name]
    problem = loud(fault) if "maximum" in name else Problem(fault.scheme)
    problem.agrees(fault.caught, tolerance=1e-9)
    plant(fault)
    with pytest.raises(AssertionError, match="Not equal|nan|Mismatch"):
        problem.agrees(fault.caught)
