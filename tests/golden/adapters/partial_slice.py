"""A slice of the head that is turned: latent attention, one head that is key and value, and images beside text."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.adapters.rotary_nd import turned as turned_places
from tests.golden.case import Case, Check
from tests.golden.spectrum import said, spectrum
from tests.golden.through import run
from tests.golden.turned import reach, turned

schemes = ("rope", "yarn", "vo_rope", "mrope")
NONE = {"layer": {}, "heads": {}}


def compare(case: Case) -> Iterator[Check]:
    rule = _sections if "axis_of_frequency" in case.args else _shared if "kv" in case.arrays else _latent
    yield from rule(case)


def _text(args, head, **more) -> str:
    about = {
        "base": args["rope_theta"],
        "layout": args["layout"],
        "fraction": args["rotary_dim"] / head,
        "at": args["at"],
    }
    return ", ".join(f"{name}={value!r}" for name, value in (about | more).items())


def _forward(case: Case) -> float:
    """Where positions are far, angles of the reference in float32 are off."""
    return 2e-5 if case.arrays["positions"].max() < 1000 else 5e-3


def _visible(case: Case) -> dict:
    a = case.arrays
    sinks = {"sinks": jnp.asarray(a["sinks"])} if "sinks" in a else {}
    return {"positions": a["positions"], "segments": a["document"] + 1 - a["document"].min(), **sinks}


def _latent(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    head = a["q"].shape[-1]
    if "yarn" in args:
        about = dict(args["yarn"])
        original = about.pop("original_max_position_embeddings")
        scheme = posenc.parse(f"yarn({_text(args, head, original=original, **about)})")
    else:
        scheme = posenc.parse(f"rope({_text(args, head)})")
    alone = said("yarn" if "yarn" in args else "rope", args["rotary_dim"], **_settings(scheme))
    frequency, size = spectrum(alone, args["rotary_dim"])
    yield Check("inv_freq, relative", frequency / a["inv_freq"], np.ones(len(frequency)), 1e-6)
    yield Check("attention_factor", size, np.full(len(size), args.get("attention_factor", 1.0)), 1e-7)
    joined = [a["k_nope"], np.broadcast_to(a["k_rope"], (*a["k_nope"].shape[:3], a["k_rope"].shape[-1]))]
    q, k = a["q"], np.concatenate(joined, -1)
    order = _released_order(args, head)
    for side, name, x in (("query", "q", q), ("key", "k", k)):
        ours = np.asarray(turned(scheme, side, x, a["positions"]))
        yield Check(f"{name}_out", ours[..., order], a[f"{name}_out_as_released"], reach(a["positions"]))
        with jax.enable_x64(True):
            exact = turned(_with_recorded(scheme, a["inv_freq"]), side, x.astype(float), a["positions"])
            yield Check(f"{name}_out_f64", exact, a[f"{name}_out_f64"], 1e-10)
    tokens_first = [jnp.asarray(x).swapaxes(1, 2) for x in (q, k, a["v"])]
    attend = lambda v: posenc.attend(scheme, NONE, *tokens_first[:2], v, scale=args["scale"], **_visible(case))  # noqa: E731
    batch, heads, length = q.shape[:3]
    one = jnp.eye(length, dtype=jnp.float32)[:, None]
    weights = attend(jnp.broadcast_to(one, (batch, length, heads, length)))
    yield Check("weights", weights.swapaxes(1, 2), a["weights"], _forward(case))
    yield Check("out", attend(tokens_first[2]).swapaxes(1, 2), a["out"], _forward(case))
    rows = turned(scheme, "query", q, a["positions"]) @ turned(scheme, "key", k, a["positions"]).swapaxes(2, 3)
    seen = np.tri(length, dtype=bool) & (a["document"][:, None] == a["document"][None, :])
    theirs = a["scores"]
    yield Check("scores", jnp.where(seen, rows * args["scale"], 0), np.where(seen, theirs, 0), _forward(case))


def _settings(scheme) -> dict:
    kept = ("base", "original", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
    return {name: getattr(scheme, name) for name in kept if hasattr(scheme, name)}


def _with_recorded(scheme, frequency):
    """RoPE with the recorded frequencies, which are rounded to float32; far positions magnify that."""
    given = tuple(frequency.tolist())
    return posenc.parse(
        f"rope(frequencies={given!r}, layout={scheme.layout!r}, fraction={scheme.fraction!r}, at={scheme.at!r})"
    )


def _released_order(args, head) -> np.ndarray:
    """The features as the release leaves them: of a turned slice maybe the even ones first."""
    plain = np.arange(head - args["rotary_dim"])
    part = np.arange(head - args["rotary_dim"], head)
    in_place = args["q_out_order"] == "in place"
    return np.concatenate([plain, part] if in_place else [plain, part[::2], part[1::2]])


def _shared(case: Case) -> Iterator[Check]:
    """One head is key and value at once."""
    args, a = case.args, case.arrays
    head, width = a["q"].shape[-1], args["rotary_dim"]
    window = "" if args["window"] is None else f" + window({args['window']})"
    scheme = posenc.parse(f"vo_rope({_text(args, head)})")
    hooks = posenc.parse(f"vo_rope({_text(args, head)}){window}")
    frequency = args["rope_theta"] ** (-np.arange(0, width, 2) / width)
    yield Check("inv_freq, relative", frequency / a["inv_freq"], np.ones(width // 2), 1e-6)
    for side, name in (("query", "q"), ("key", "kv")):
        yield Check(
            f"{name}_out", turned(scheme, side, a[name], a["positions"]), a[f"{name}_out"], reach(a["positions"])
        )

    def f(q, kv):
        q, kv = q.swapaxes(1, 2), kv.swapaxes(1, 2)
        return posenc.attend(hooks, NONE, q, kv, kv, **_visible(case)).swapaxes(1, 2)

    far = _forward(case)
    out, (grad_q, grad_kv) = run(f, a["cotangent"], a["q"], a["kv"])
    yield Check("out", out, a["out"], far)
    yield Check("out in float32 against float64", out, a["out_f64"], 1e-6 if far < 1e-3 else 2e-4)
    yield Check("grad_q", grad_q, a["grad_q"], far)
    yield Check("grad_kv", grad_kv, a["grad_kv"], far)
    kept = {name: value for name, value in _visible(case).items() if name != "positions"}
    q, k = (turned(scheme, side, a[n], a["positions"]).swapaxes(1, 2) for side, n in (("query", "q"), ("key", "kv")))
    nope = posenc.parse(f"nope{window}")
    one = jnp.eye(q.shape[1], dtype=jnp.float32)[:, None]
    weights = posenc.attend(nope, NONE, q, k, jnp.broadcast_to(one, (q.shape[0], q.shape[1], 1, q.shape[1])), **kept)
    yield Check("weights", weights.swapaxes(1, 2), a["weights"], far)
    before = posenc.attend(nope, NONE, q, k, k, **kept)
    yield Check("out_before_inverse", before.swapaxes(1, 2), a["out_before_inverse"], far)


def _sections(case: Case) -> Iterator[Check]:
    """Sections that leave no room for width are cut as the release cuts them; ours are what it computes."""
    args, a = case.args, case.arrays
    head, order = a["q"].shape[-1], {"consecutive": "chunked"}.get(args["order"], args["order"])
    sections = tuple(np.bincount(args["axis_of_frequency"], minlength=3).tolist())
    scheme = posenc.parse(f"mrope(sections={sections!r}, order={order!r}, {_text(args, head)})")
    assert scheme._axis_of_pairs().tolist() == args["axis_of_frequency"]
    width = args["rotary_dim"]
    frequency = args["rope_theta"] ** (-np.arange(0, width, 2) / width)
    yield Check("inv_freq, relative", frequency / a["inv_freq"], np.ones(width // 2), 1e-6)
    places, far = jnp.moveaxis(a["positions"], 0, -1), reach(a["positions"])
    f = lambda side, x: turned_places(scheme, side, jnp.zeros(x.shape[1]), jnp.asarray(x), places)  # noqa: E731
    for side, name in (("query", "q"), ("key", "k")):
        ours = f(side, a[name])
        yield Check(f"{name}_out", ours, a[f"{name}_out"], far)
        yield Check(f"{name}_out in float32 against float64", ours, a[f"{name}_out_f64"], far)
    _, (grad,) = run(lambda q: f("query", q), a["cotangent"], a["q"])
    yield Check("grad_q", grad, a["grad_q"], far)
