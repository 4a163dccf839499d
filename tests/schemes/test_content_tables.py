"""Music Transformer: a vector for every distance of its table, and nothing beyond it."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.schemes.helpers import DIMS, attend, made, tokens


def test_rows_that_no_pair_reads_get_no_gradient():
    scheme, params = made("music_transformer(reach=8)")
    q, k, v, _ = tokens(5)
    back = jax.jit(jax.grad(lambda p: (attend(scheme, p, q, k, v) ** 2).sum()))(params)
    used = np.abs(np.asarray(back["heads"]["key"])).sum((0, 2)) > 0
    assert used.tolist() == [False] * 3 + [True] * 5  # the farthest past first


def test_the_table_serves_training_and_both_sides_where_both_are_seen():
    causal, both = made("music_transformer"), made("music_transformer", posenc.Dims(6, 4, 4, 16, causal=False))
    assert causal[1]["heads"]["key"].shape == (4, 16, 4) and both[1]["heads"]["key"].shape == (4, 31, 4)
    assert causal[0].reach == 16 and not causal[0].overrides("value_bias")


def test_rows_start_as_normal_of_the_heads_width():
    key = np.asarray(made("music_transformer(reach=2000)")[1]["heads"]["key"])
    assert abs(key.std() * DIMS.head**0.5 - 1) < 0.02


def test_in_a_bfloat16_model_what_is_added_to_scores_is_not_rounded():
    scheme, params = made("music_transformer")
    by_distance = scheme.query({"key": params["heads"]["key"][0]}, jnp.ones((3, 4), jnp.bfloat16), None)[1]
    assert by_distance.dtype == jnp.float32
