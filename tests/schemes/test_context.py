"""Selective RoPE, CARoPE and RePo: rotations by what the tokens say, and what ties them to RoPE."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.numerics import segment_scans
from tests.schemes.helpers import attend, made, tokens

DIMS = posenc.Dims(width=8, heads=4, head=4, trained=16)


def located(scheme, params, x, head=0, segment=None):
    """What each token is told of itself under one head."""
    p = params["layer"] | {name: a[head] for name, a in params["heads"].items()}
    segment = np.ones(len(x), np.int32) if segment is None else np.asarray(segment, np.int32)
    at = posenc.At(np.arange(len(x)), np.arange(len(x)), segment, np.arange(len(x)) + 1, head, DIMS.heads)
    run = lambda p, x, segment: scheme.locate(p, x, at._replace(segment=segment), scheme.carry(DIMS))[0]  # noqa: E731
    return np.asarray(jax.jit(run)(p, x, segment))


def louder(params, by=30.0):
    """Parameters whose effect is seen: at the start tokens hardly turn anything."""
    return jax.tree.map(lambda a: a * by, params)


def start(text, seed=0):
    return made(text, DIMS, seed)


def apart(a, b):
    return np.abs(np.asarray(a) - np.asarray(b)).max()


class TestSelectiveRoPE:
    @pytest.mark.ci
    def test_a_bias_and_no_projection_are_rope(self):
        scheme, params = start("selective_rope(bias=True, base=100.0)")
        params["layer"]["down"] = jnp.zeros_like(params["layer"]["down"])
        q, k, v, x = tokens(9, dims=DIMS)
        ours = attend(scheme, params, q, k, v, x)
        np.testing.assert_allclose(ours, attend(*start("rope(base=100.0)"), q, k, v), atol=2e-6)

    def test_no_projection_and_no_bias_are_no_encoding(self):
        scheme, params = start("selective_rope(gate=True)")
        params["layer"]["down"] = jnp.zeros_like(params["layer"]["down"])
        q, k, v, x = tokens(7, dims=DIMS)
        np.testing.assert_allclose(attend(scheme, params, q, k, v, x), attend(*start("nope"), q, k, v), atol=1e-6)

    def test_differences_of_neighbours_add_up_to_the_token_itself(self):
        scheme, params = start("selective_rope(kernel=0)")
        x = tokens(6, dims=DIMS)[3]
        c = located(scheme, louder(params), x)
        changed = np.copy(x)
        changed[:3] += 1
        np.testing.assert_allclose(located(scheme, louder(params), changed)[3:], c[3:], atol=1e-5)
        assert apart(c[1:], c[:-1]) > 0.1

    def test_a_learned_convolution_remembers_as_many_tokens_as_its_kernel_in_each_phase(self):
        scheme, params = start("selective_rope(kernel=3)")
        x = tokens(8, dims=DIMS)[3]
        changed = np.copy(x)
        changed[2] += 1
        steps = [np.diff(located(scheme, louder(params), a), axis=0) for a in (x, changed)]
        moved = np.abs(steps[0] - steps[1]).max(1) > 1e-6
        np.testing.assert_array_equal(moved, [False, True, True, True, False, False, False])

    def test_the_size_of_features_is_nothing_to_it_and_the_part_of_each_head_is_weighed_alike(self):
        scheme, params = start("selective_rope(gate=True)")
        x = tokens(6, dims=DIMS)[3]
        factors = np.repeat([100.0, 3.0, 20.0, 7.0], 2).astype(np.float32)
        c = located(scheme, louder(params), x + np.sign(x))
        np.testing.assert_allclose(located(scheme, louder(params), (x + np.sign(x)) * factors), c, atol=1e-4)
        assert np.abs(c).max() > 0.1

    @pytest.mark.ci
    def test_a_full_projection_reads_the_part_of_its_own_head_and_the_length_of_its_columns_is_learned(self):
        scheme, params = start("selective_rope(rank=0)")
        x = tokens(6, dims=DIMS)[3]
        other = np.copy(x)
        other[:, 2:4] += 1
        np.testing.assert_array_equal(located(scheme, params, other, 0), located(scheme, params, x, 0))
        assert apart(located(scheme, params, other, 1), located(scheme, params, x, 1)) > 1e-3
        wide = params | {"heads": params["heads"] | {"w": params["heads"]["w"] * 5}}
        np.testing.assert_allclose(located(scheme, wide, x), located(scheme, params, x), atol=1e-6)
        long = params | {"heads": params["heads"] | {"length": params["heads"]["length"] * 5}}
        np.testing.assert_allclose(located(scheme, long, x), 5 * located(scheme, params, x), atol=1e-5)

    def test_a_gate_that_is_shut_stops_the_turning(self):
        scheme, params = start("selective_rope(gate=True, bias=True)")
        params["heads"]["gate_bias"] = jnp.full(4, -60.0)
        assert np.abs(located(scheme, params, tokens(6, dims=DIMS)[3])).max() < 1e-6

    @pytest.mark.parametrize(("spectrum", "base"), [("rope", 500000.0), ("rfa", 0.9)])
    def test_temperatures_are_fixed_unless_learned_and_fall_or_rise_to_one(self, spectrum, base):
        fixed, params = start(f"selective_rope(spectrum={spectrum!r}, base={base})")
        learned, more = start(f"selective_rope(spectrum={spectrum!r}, base={base}, frequencies='learned')")
        assert "temperature" not in params["layer"] and more["layer"]["temperature"].shape == (2,)
        expected = [1, base**-0.5] if spectrum == "rope" else [0, 1]
        np.testing.assert_allclose(more["layer"]["temperature"], expected, rtol=1e-6)
        q, k, v, x = tokens(6, dims=DIMS)
        loss = lambda p: (posenc.attend(learned, p, q, k, v, x=x) * v).sum()  # noqa: E731
        back = jax.jit(jax.grad(loss))(louder(more))["layer"]["temperature"]
        assert (np.abs(back) > 1e-6).all()

    @pytest.mark.ci
    def test_phases_restart_with_each_document_and_so_does_the_convolution(self, monkeypatch):
        """R-25: positions reset, or they do not."""
        segments = [1, 1, 1, 2, 2, 2, 2, 3]

        def holds():
            scheme, params = start("selective_rope(bias=True)")
            x = tokens(8, dims=DIMS)[3]
            packed = located(scheme, louder(params), x, segment=segments)
            for one in set(segments):
                mine = np.array(segments) == one
                np.testing.assert_allclose(packed[mine], located(scheme, louder(params), x[mine]), atol=1e-5)

        holds()
        right = segment_scans.recent
        monkeypatch.setattr(segment_scans, "recent", lambda x, segment, carry: right(x, jnp.ones_like(segment), carry))
        with pytest.raises(AssertionError):
            holds()

    def test_in_half_precision_phases_add_up_in_float32(self):
        """R-1: angles of a bfloat16 model."""
        scheme, params = start("selective_rope(bias=True)")
        x = jnp.asarray(tokens(300, dims=DIMS)[3], jnp.bfloat16)
        exact = located(scheme, params, x.astype(jnp.float32))
        np.testing.assert_allclose(located(scheme, params, x), exact, rtol=1e-5)
        assert len(np.unique(exact[:, 0])) == 300

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("selective_rope(rank=-1)", "'rank' of 'selective_rope' is -1; it must be at least 0"),
            ("selective_rope(kernel=-2)", "'kernel' of 'selective_rope' is -2; it must be at least 0"),
            (
                "selective_rope(kernel=0, activation='silu')",
                "'selective_rope' with kernel=0 has no activation; take kernel=4, or leave activation out",
            ),
            ("selective_rope(base=1)", "base of 'selective_rope' is 1.0"),
            ("selective_rope(spectrum='rfa')", "above 0 and below 1, such as 0.9"),
            ("selective_rope(spectrum='rfa', base=0.0)", "above 0 and below 1, such as 0.9"),
        ],
    )
    def test_settings_without_a_meaning_are_refused(self, text, why):
        with pytest.raises(ValueError, match=why):
            posenc.parse(text)

    @pytest.mark.parametrize(
        ("text", "dims", "why"),
        [
            ("selective_rope", posenc.Dims(8, 2, 3, 16), "a head has 3; take an even width, 2 or 4"),
            ("selective_rope", posenc.Dims(9, 2, 4, 16), "2 heads do not divide 9; choose a divisor"),
            (
                "selective_rope(spectrum='rfa', base=0.5)",
                posenc.Dims(8, 4, 2, 16),
                "The lowest 'rfa' temperature is 0, so a head of 2 features would not turn; take at least 4",
            ),
        ],
    )
    def test_sizes_that_do_not_fit_are_refused(self, text, dims, why):
        with pytest.raises(ValueError, match=why):
            posenc.bind(posenc.parse(text), dims)


class TestCARoPE:
    def test_it_starts_as_rope(self):
        q, k, v, x = tokens(9, dims=DIMS)
        ours = attend(*start("carope(base=100.0)"), q, k, v, x)
        np.testing.assert_allclose(ours, attend(*start("rope(base=100.0)"), q, k, v), atol=2e-6)

    def test_powers_from_one_are_those_of_rope_but_for_the_highest(self):
        scheme, params = start("carope(base=100.0, first=1)")
        c = located(scheme, params, tokens(5, dims=DIMS)[3])
        np.testing.assert_allclose(c, np.arange(1, 6)[:, None] * 100.0 ** (-np.arange(1, 3) / 2), rtol=1e-5)

    def test_from_zero_the_first_pair_counts_tokens_and_from_one_every_pair_is_chosen(self):
        x = tokens(6, dims=DIMS)[3]
        for first, chosen in ((0, [False, True]), (1, [True, True])):
            scheme, params = start(f"carope(base=10.0, first={first})")
            params["heads"]["w"] = params["heads"]["w"] + 0.7
            steps = np.diff(located(scheme, params, x), axis=0)
            np.testing.assert_array_equal(steps.std(0) > 1e-3, chosen)

    def test_heads_choose_for_themselves(self):
        scheme, params = start("carope(base=10.0)")
        params["heads"]["w"] = jnp.asarray(np.random.default_rng(0).normal(size=(4, 8)), jnp.float32)
        x = tokens(6, dims=DIMS)[3]
        assert apart(located(scheme, params, x, 0), located(scheme, params, x, 1)) > 0.1

    @pytest.mark.parametrize("size", [1e4, -1e4])
    def test_frequencies_are_between_nothing_and_one_for_any_token_and_gradients_finite(self, size):
        scheme, params = start("carope(first=1)")
        params["heads"]["w"] = params["heads"]["w"] + 1
        x = np.full((5, 8), size, np.float32)
        steps = np.diff(located(scheme, params, x), axis=0)
        assert (steps >= 0).all() and (steps <= 1).all()
        q, k, v, _ = tokens(5, dims=DIMS)
        back = jax.jit(jax.grad(lambda p: posenc.attend(scheme, p, q, k, v, x=x).sum()))(params)
        assert all(np.isfinite(a).all() for a in jax.tree.leaves(back))

    @pytest.mark.parametrize("base", [1e4, 1.0001, 1e30])
    def test_it_starts_as_rope_of_any_base(self, base):
        """softplus(b) is base^(2/d) - 1, whose exponential would overflow."""
        scheme, params = made(f"carope(base={base})", posenc.Dims(8, 4, 4, 16))
        c = located(scheme, params, np.zeros((2, 8), np.float32))
        np.testing.assert_allclose(np.diff(c, axis=0)[0], [1, base**-0.5], rtol=1e-4)

    def test_what_has_no_meaning_is_refused(self):
        with pytest.raises(ValueError, match=r"base of 'carope' is 0\.5; it must be above 1"):
            posenc.parse("carope(base=0.5)")
        with pytest.raises(ValueError, match="'carope' has first=2; it must be 0 or 1"):
            posenc.parse("carope(first=2)")
        with pytest.raises(ValueError, match="a head has 5"):
            posenc.bind(posenc.parse("carope"), posenc.Dims(8, 1, 5, 16))
        with pytest.raises(ValueError, match="2 features are a single pair; take at least 4, or first=1"):
            posenc.bind(posenc.parse("carope"), posenc.Dims(8, 1, 2, 16))
        assert posenc.bind(posenc.parse("carope(first=1)"), posenc.Dims(8, 1, 2, 16))


@pytest.mark.parametrize("text", ["selective_rope", "carope"])
def test_what_adds_up_is_refused_where_the_future_is_seen_and_without_features(text):
    scheme, params = start(text)
    q, k, v, x = tokens(4, dims=DIMS)
    with pytest.raises(ValueError, match="causal only.*its phases add up from a key to a later query"):
        posenc.attend(scheme, params, q, k, v, x=x, mask="full")
    with pytest.raises(ValueError, match="pass x"):
        posenc.attend(scheme, params, q, k, v)
    with pytest.raises(ValueError, match="undefined between two sequences"):
        posenc.attend(scheme, params, q[:2], k, v, x=x[:2], key_x=x)


class TestRePo:
    @pytest.mark.parametrize("mode", ["linear", "shared"])
    def test_features_that_hold_positions_make_it_rope(self, mode):
        scheme, params = start(f"repo(mode={mode!r}, base=100.0)")
        group = "layer" if mode == "shared" else "heads"
        params[group]["w"] = jnp.zeros_like(params[group]["w"]).at[..., 2].set(1)
        q, k, v, x = tokens(6, dims=DIMS)
        places = np.array([0.0, 7.5, 3.0, 3.0, -2.25, 100.0], np.float32)
        x[:, 2] = places
        ours = attend(scheme, params, q, k, v, x)
        np.testing.assert_allclose(ours, attend(*start("rope(base=100.0)"), q, k, v, positions=places), atol=2e-6)

    @pytest.mark.parametrize("mode", ["swiglu", "linear", "shared"])
    def test_it_is_told_nothing_of_where_tokens_stand(self, mode):
        """Without a causal mask a permutation of the tokens permutes what comes out."""
        scheme, params = start(f"repo(mode={mode!r})")
        q, k, v, x = tokens(6, dims=DIMS)
        order = np.array([3, 0, 5, 1, 4, 2])
        out = attend(scheme, louder(params), q, k, v, x, mask="full")
        mixed = attend(scheme, louder(params), *(a[order] for a in (q, k, v, x)), mask="full")
        np.testing.assert_allclose(mixed, np.asarray(out)[order], atol=2e-6)
        given = attend(scheme, louder(params), q, k, v, x, mask="full", positions=order)
        np.testing.assert_array_equal(given, out)
        assert apart(out, attend(*start("nope"), q, k, v, mask="full")) > 1e-2

    def test_between_two_sequences_each_token_chooses_by_its_own_features(self):
        scheme, params = start("repo(mode='shared', base=100.0)")
        params = louder(params)
        q, k, v, x = tokens(7, dims=DIMS)
        asked, key_x = x[:3] * 2 + 1, x
        ours = attend(scheme, params, q[:3], k, v, asked, key_x=key_x, mask="full")
        w = params["layer"]["w"]
        where = {"positions": asked @ w, "key_positions": key_x @ w, "mask": "full"}
        np.testing.assert_allclose(ours, attend(*start("rope(base=100.0)"), q[:3], k, v, **where), atol=2e-6)

    def test_shared_positions_leave_grouped_keys_few(self):
        dims = posenc.Dims(width=8, heads=4, head=4, trained=16, key_heads=2)
        for mode, kept in (("shared", 2), ("linear", 4), ("swiglu", 4)):
            scheme, params = made(f"repo(mode={mode!r})", dims)
            cache = posenc.Cache.empty(scheme, params, dims, batch=1, capacity=4, dtype=jnp.float32)
            assert cache.k.shape == (1, kept, 4, 4)

    def test_it_starts_with_small_weights_and_an_eighth_of_the_width(self):
        _, params = made("repo", posenc.Dims(width=136, heads=4, head=4, trained=16))
        shapes = {name: a.shape for group in params.values() for name, a in group.items()}
        assert shapes == {"gate": (17, 136), "content": (17, 136), "w": (4, 17)}
        gate = np.asarray(params["layer"]["gate"])
        assert np.abs(gate).max() <= 0.06 and abs(gate.std() / 0.02 - 1) < 0.05
        assert made("repo", posenc.Dims(9, 1, 4, 16))[1]["heads"]["w"].shape == (1, 2)

    def test_what_has_no_meaning_is_refused(self):
        with pytest.raises(ValueError, match="base of 'repo' is 0.0"):
            posenc.parse("repo(base=0)")
        with pytest.raises(ValueError, match="'swiglu' or 'linear' or 'shared'"):
            posenc.parse("repo(mode='quadratic')")
        with pytest.raises(ValueError, match="a head has 7; take an even width, 6 or 8"):
            posenc.bind(posenc.parse("repo"), posenc.Dims(8, 1, 7, 16))
