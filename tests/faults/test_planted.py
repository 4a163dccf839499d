"""The contract fails when it should: each fault is written into one function, and the property named must notice it.

A fault is a piece of source and what replaces it, so that the table reads as the mistakes would in a review.
"""

import pytest

import posenc
from posenc import contract  # whole, so that no module is first imported while a fault is planted
from tests.contract import toys
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture

FUTURE, DECODE, ORDER, SUMS = (
    "the_future_is_unseen",
    "cached_decoding_equals_the_full_forward",
    "hooks_run_once_in_order",
    "sums_run_in_order",
)
MASKS, ATTENTION, ENCODE = "posenc.core.masks:", "posenc.attention.attend:", "posenc.attention.encode:"
KERNELS, CACHE, SCHEMES = "posenc.attention.kernels.", "posenc.attention.cache:", "posenc.schemes."
ANGLES = "posenc.numerics.rotary:angles_of"
SCANS = "posenc.numerics.segment_scans:"

FAULTS = {
    "the causal mask lets the next token in": Fault(
        MASKS + "sees", "ahead <= window.right", "ahead <= window.right + 1", "rope", FUTURE
    ),
    "mask < for <=, so that no token sees itself": Fault(
        MASKS + "sees", "ahead <= window.right", "ahead < window.right", "nope", ORDER
    ),
    "documents see each other": Fault(
        MASKS + "sees", "== ks[None, :]", ">= 0 * ks[None, :]", "nope", "documents_do_not_leak"
    ),
    "padding sees padding": Fault(
        MASKS + "sees", " & (ks > 0)[None, :]", "", "shaw", "rows_that_see_nothing_are_zero"
    ),
    "the mask compares positions": Fault(
        ENCODE + "encode", "sides = query, Side(key_at.position, ki,",
        "sides = query._replace(index=at.position), Side(key_at.position, key_at.position,",
        "rope", "tokens_stay_where_positions_say",
    ),
    "positions run on through packed documents": Fault(
        MASKS + "since_start", "xp.where(first, index, start)", "xp.where(first, 0, start)",
        "log_n(trained=4)", "implied_positions_are_the_index",
    ),
    "padding is not set to zero": Fault(
        "posenc.attention.tokens:zero_padding",
        "a is None or segments is None",
        "True",
        "nope",
        "nan_in_padding_stays_there",
    ),
    "padding counts among the keys that a query sees": Fault(
        KERNELS + "form:count_visible", "query.segment is None", "True", "ssmax", "padding_changes_nothing"
    ),
    "a row that sees nothing gets the mean of the values": Fault(
        KERNELS + "dense:_weights", "jnp.where(nothing, 0.0,", "jnp.where(nothing, 1 / s.shape[-1],",
        "nope", "rows_that_see_nothing_are_zero",
    ),
    "softmax runs over what is not seen": Fault(
        KERNELS + "dense:_weights", "jnp.where(seen, s, -jnp.inf)", "s", "alibi", FUTURE
    ),
    "scores are divided by d, not by its root": Fault(
        "posenc.core.scheme:Scheme.scale", "d**-0.5", "1 / d", "rope", ORDER
    ),
    "scores are divided by the root of the widened query": Fault(
        KERNELS + "dense:steps", "dot * form.weighting.scale", "dot * encoded.q.shape[-1] ** -0.5",
        "transformer_xl", ORDER,
    ),
    "the value hook is left out": Fault(
        "posenc.core.scheme:Scheme.pair", "self.value(p, v, info)", "v", "Turned", ORDER
    ),
    "the output hook is left out": Fault(
        ENCODE + "finish", "scheme.output(merge(layer, own), o, info)", "o", "Turned", ORDER
    ),
    "the input is embedded twice": Fault(
        ATTENTION + "embed", "scheme.embed(p, x, at)", "scheme.embed(p, scheme.embed(p, x, at), at)",
        "sinusoidal", ORDER,
    ),
    "repeated keys are in the wrong order": Fault(
        ENCODE + "encode_keys", "jnp.repeat(a, heads // k.shape[0], 0)", "jnp.tile(a, (heads // k.shape[0], 1, 1))",
        "fox", "grouped_queries_equal_repeated_keys",
    ),
    "query heads are dealt to key heads in turn": Fault(
        KERNELS + "dense:steps", "a.reshape(groups, heads.size // groups, *a.shape[1:])",
        "a.reshape(heads.size // groups, groups, *a.shape[1:]).swapaxes(0, 1)",
        "rope", "grouped_queries_equal_repeated_keys",
    ),
    "the cache's index does not advance": Fault(
        CACHE + "extend", "length + new, index, ", "length, index, ", "nope", DECODE
    ),
    "the carry is not kept": Fault(
        CACHE + "extend", "segment, carry, past", "segment, cache.carry, past", "fox", DECODE
    ),
    "the token before is not kept": Fault(
        CACHE + "extend", "carry, past, *document", "carry, cache.past, *document", "kv_shift", DECODE
    ),
    "positions are one too many in decoding": Fault(
        CACHE + "extend", "at = describe(scheme, qi,", "at = describe(scheme, qi + 1,", "log_n(trained=4)", DECODE
    ),
    "positions begin anew in each chunk": Fault(
        CACHE + "extend", ", heads, cache.document, cache.began)", ", heads, 0, length)", "rope", DECODE
    ),
    "padding ends a document": Fault(
        MASKS + "documents", "return xp.take_along_axis(segment, last, -1)", "return segment",
        "log_n(trained=4)", "padding_ends_no_document",
    ),
    "padding ends a document in the cache": Fault(
        CACHE + "last", "now = documents(", "now = (", "rope", DECODE
    ),
    "gates begin anew after padding": Fault(
        SCANS + "_documents", "jnp.where(b > 0, b, a)", "b", "fox", "padding_inside_is_passed_over"
    ),
    "distance changes its sign in decoding": Fault(
        CACHE + "extend", "key = Side(held.position, ki, segment, None, held_unplaced)",
        "key, query = Side(-held.position, ki, segment, None, None), query._replace(position=-at.position)",
        "t5(bidirectional=False)", DECODE,
    ),
    "documents are forgotten by the cache": Fault(
        CACHE + "extend", "write(cache.segment, t.segments, slots, 0)",
        "write(cache.segment, jnp.ones_like(t.segments), slots, 0)", "nope", DECODE,
    ),
    "the start of a block of queries is ignored": Fault(
        ENCODE + "encode", "start + jnp.arange(queries", "0 * start + jnp.arange(queries",
        "alibi", "a_block_of_queries_is_part_of_the_square",
    ),
    "a block of queries is told what it could see of itself": Fault(
        "posenc.core.scheme:Scheme.lookup", "if not self.contextual:", "if True:",
        "Counted", "a_block_of_queries_is_part_of_the_square",
    ),
    "a part of a sum is told another's tile": Fault(
        "posenc.core.chain:Chain.score", "_tile(tile, n)", "_tile(tile, -1)", "fox", SUMS
    ),
    "a sum leaves out what its parts do to values": Fault(
        "posenc.core.chain:Chain.pair", "part_info, v = s.pair(", "part_info, _ = s.pair(", "vo_rope + alibi", SUMS
    ),
    "a sum leaves out what its parts add to values": Fault(
        "posenc.core.chain:Chain.value_bias", "for n in adds)", "for n in adds) * 0", "shaw", SUMS
    ),
    "locate looks ahead": Fault(
        SCANS + "total", "_scan(_add, (jnp.where(shaped(segment > 0), steps, 0), begins))",
        "jax.lax.associative_scan(_add, (jnp.where(shaped(segment > 0), steps, 0), begins), reverse=True)",
        "fox", FUTURE,
    ),
    "locate does not begin anew with a document": Fault(
        SCANS + "_add", "jnp.where(b[1], b[0], a[0] + b[0])", "a[0] + b[0]", "fox", "documents_do_not_leak"
    ),
    "a chunk forgets the sum so far": Fault(
        SCANS + "total", "jnp.where(begun, sums, sums + so_far.astype(sums.dtype)[None])", "sums", "fox", DECODE
    ),
    "angles are bfloat16 in a bfloat16 model": Fault(
        ANGLES, "widened(x.dtype)", "x.dtype",
        "rope", "queries_and_keys_are_rounded_once"
    ),
    "positions are bfloat16 in a bfloat16 model": Fault(
        ANGLES, "angles(position,", "angles(position.astype(x.dtype),",
        "rope", "bfloat16_loses_no_position",
    ),
    "a score that multiplies is declared to read distance": Fault(
        SCHEMES + "alibi:ALiBi.score", "return s + ", "return s * ", "alibi", "scores_read_what_is_declared"
    ),
    "a score reads the index for the position": Fault(
        SCHEMES + "alibi:ALiBi.score", "tile.distance", "(tile.qi[:, None] - tile.ki[None, :])",
        "alibi", "without_positions_order_is_unseen",
    ),
    "positions are dropped": Fault(
        ANGLES, "angles(position,", "angles(position * 0,",
        "rope", "with_positions_order_is_seen",
    ),
    "a setting grows with the longest sequence seen": Fault(
        ANGLES, 'frequency = p.get("frequency", frequencies_of(scheme, x.shape[-1]))',
        "SEEN.append(x.shape[0]); frequency = frequencies_of(scheme, x.shape[-1]) / max(SEEN)",
        "rope", "no_state_is_kept",
    ),
    "frequencies depend on the length": Fault(
        ANGLES, "frequencies_of(scheme, x.shape[-1])",
        "frequencies_of(scheme, x.shape[-1]) / x.shape[0]", "rope", "no_state_is_kept",
    ),
    "a table has no gradient": Fault(
        SCHEMES + "shaw:Shaw.score", "(tile.query_info * tile.scale)",
        "jax.lax.stop_gradient(tile.query_info * tile.scale)",
        "shaw", "gradients_are_those_of_the_function",
    ),
    "a root has an infinite slope at distance zero": Fault(
        SCHEMES + "fire:FIRE.score", 'jnp.log1p(jnp.abs(p["c"] * x))', 'jnp.sqrt(jnp.abs(p["c"] * x))',
        "fire", "gradients_hold_at_distance_zero",
    ),
    "the score of a future key is NaN": Fault(
        SCHEMES + "sandwich:Sandwich.score", "jnp.cos(turn)", "jnp.cos(jnp.sqrt(turn))",
        "sandwich", "scores_of_the_future_are_finite",
    ),
    "what is added to values is not linear in the weights": Fault(
        SCHEMES + "shaw:Shaw.value_bias", "return weight @", "return jnp.sqrt(weight) @", "shaw", "extra_is_linear"
    ),
    "unseen keys have weight": Fault(
        "tests.contract.toys:StickBreaking.normalize", "jnp.exp(jax.nn.log_sigmoid(s) + left), 0)",
        "jnp.exp(jax.nn.log_sigmoid(s) + left), 1e-9)", "StickBreaking", "weights_are_zero_where_nothing_is_seen",
    ),
    "a text leaves out what was changed": Fault(
        "posenc.naming:_tree", "named(s, s.name)", "grammar.Call(s.name, (), ())", "rope(base=3.0)",
        "its_text_names_it",
    ),
    "parameters depend on how often they were made": Fault(
        SCHEMES + "learned:Learned.init", "0.02 *", "SEEN.append(1) or len(SEEN) *",
        "learned", "parameters_are_as_declared",
    ),
    "a parameter has the type of a number of Python's": Fault(
        SCHEMES + "fire:FIRE.init", "self.c, jnp.float32", "self.c", "fire", "parameters_are_as_declared"
    ),
    "products are left to the device": Fault(
        "posenc.numerics.precision:product", ', precision="highest"', "", "shaw", "products_keep_their_digits"
    ),
    "complex products are left to the device": Fault(
        "posenc.numerics.orthogonal:_back", ', precision="highest"', "", "liere", "products_keep_their_digits"
    ),
    "positions of a wrong shape are taken": Fault(
        "posenc.attention.positions:per_token", "if a.shape not in", "if False and a.shape not in",
        "rope", "wrong_positions_are_refused",
    ),
}  # fmt: skip


def scheme(text):
    return getattr(toys, text)() if hasattr(toys, text) else posenc.parse(text)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, plant):
    fault = FAULTS[name]
    plant(fault)
    report = contract.check(scheme(fault.scheme), only=fault.caught)
    assert not report.ok, f"nobody noticed: {report}"
    assert "Error" not in report.failures[0].outcome.reason, f"the fault crashed rather than failed: {report}"


def test_the_faults_are_caught_by_most_of_the_contract():
    """Many properties, not one: and each holds where nothing is planted, which tests/contract says."""
    assert len(FAULTS) >= 25 and len({f.caught for f in FAULTS.values()}) >= 20


@pytest.mark.parametrize(
    "attribute, value, text, caught",
    [
        ("tied", frozenset(), "learned", "embed_reads_shared_parameters"),
        ("contextual", False, "fox", "locate_reads_as_declared"),
        ("contextual", True, "rope", "locate_reads_as_declared"),
        ("reads", "positions", "shaw", "scores_read_what_is_declared"),
        ("passes_info", True, "rerope", "hooks_run_once_in_order"),
        ("reads", "distance", "fire", "scores_read_what_is_declared"),
        ("samples", ({"base": 1.0},), "rope", "its_samples_build"),
    ],
)
def test_a_false_declaration_is_caught(attribute, value, text, caught, monkeypatch):
    case = posenc.parse(text)
    monkeypatch.setattr(type(case), attribute, value)
    assert not contract.check(case, only=caught).ok


def test_a_hook_that_raises_fails_and_says_so(monkeypatch):
    def query(self, p, q, info):
        raise RuntimeError("no query today")

    case = posenc.parse("rope")
    monkeypatch.setattr(type(case), "query", query)
    failed = contract.check(case, only="the_future_is_unseen").failures
    assert failed[0].outcome.reason == "RuntimeError: no query today"
