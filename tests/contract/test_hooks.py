"""The hook table is frozen: every scheme, ours or a stranger's, stands on it. A change here is a change of the API."""

import dataclasses
import inspect

import pytest

import posenc
from posenc.core.scheme import LIMITS, ORDER, SCHEMES, Scheme

HOOKS = {
    "validate": "(self)",
    "bind": "(self, dims)",
    "check_positions": "(self, p, position)",
    "init": "(self, key, dims)",
    "init_head": "(self, key, dims)",
    "carry": "(self, dims)",
    "neighbour_carry": "(self, dims)",
    "scale": "(self, d)",
    "embed": "(self, p, x, at)",
    "locate": "(self, p, x, at, carry)",
    "neighbours": "(self, p, role, a, at, past)",
    "query": "(self, p, q, info)",
    "key": "(self, p, k, info)",
    "value": "(self, p, v, info)",
    "pair": "(self, p, k, v, info)",
    "score": "(self, p, s, tile)",
    "normalize": "(self, p, s, tile)",
    "value_bias": "(self, p, a, tile)",
    "output": "(self, p, o, info)",
    "lookup": "(self, info, key_info, rows)",
    "overrides": "(self, *hooks)",
}
ATTRIBUTES = {
    "family": "none", "reads": "nothing", "contextual": False, "tied": frozenset(), "limits": {},
    "precedence": "any", "axes": 1, "revision": 1, "samples": (),
}  # fmt: skip


def arguments(f):
    signature = inspect.signature(f)
    return str(signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    ))  # fmt: skip


def test_the_hooks_of_a_scheme_are_these_and_no_others():
    found = {n: arguments(f) for n, f in vars(Scheme).items() if inspect.isfunction(f) and not n.startswith("_")}
    assert found == HOOKS


def test_the_class_attributes_of_a_scheme_are_these_with_these_defaults():
    assert {n: getattr(Scheme, n) for n in ATTRIBUTES} == ATTRIBUTES
    assert ORDER == ("nothing", "distance", "positions", "content", "row", "heads")


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"limits": {"backwards": "it is"}}, "'backwards'.*'bidirectional', 'cross', 'cache'"),
        ({"limits": {"cross": ""}}, "'cross'"),
        ({"limits": {"cross": True}}, "'cross'"),
        ({"limits": "cross"}, "'cross'"),
        ({"precedence": "second"}, "'second'"),
    ],
)
def test_limits_and_a_precedence_without_meaning_are_refused(declared, why):
    with pytest.raises(TypeError, match=why):
        type("Mine", (Scheme,), declared, name=None)


def test_limits_cannot_be_changed_and_a_chain_has_those_of_its_parts():
    rope, fox, t5 = (posenc.parse(text) for text in ("rope", "fox", "t5(bidirectional=False)"))
    with pytest.raises(TypeError):
        fox.limits["cache"] = "never"
    assert rope.limits == {} and set(fox.limits) <= set(LIMITS)
    both = (fox + t5).limits
    assert both == {name: f"{fox.limits[name]}; {t5.limits[name]}" for name in ("bidirectional", "cross")}
    assert (rope + t5).limits == t5.limits and "reencoded" in (rope + posenc.parse("dynamic_ntk")).limits


def test_what_hooks_are_told_is_frozen():
    assert posenc.At._fields == ("position", "index", "segment", "visible", "head", "heads")
    assert posenc.Tile._fields == (
        "query_info", "key_info", "distance", "logits", "scale", "visible", "qi", "ki", "head", "heads",
    )  # fmt: skip
    fields = [f.name for f in dataclasses.fields(posenc.Dims)]
    assert fields == ["width", "heads", "head", "trained", "longest", "key_heads", "causal"]


@pytest.mark.parametrize("name", posenc.names())
def test_a_scheme_overrides_hooks_with_the_same_arguments(name):
    cls = SCHEMES.find(name)
    own = {n: arguments(getattr(cls, n)) for n in HOOKS if n in vars(cls) and n != "overrides"}
    assert own == {n: HOOKS[n] for n in own}


def test_what_a_scheme_may_not_be_is_refused_by_the_class_statement():
    from posenc.schemes.alibi import ALiBi

    with pytest.raises(TypeError, match="final"):
        type("Louder", (ALiBi,), {"__annotations__": {}}, name="louder")
    with pytest.raises(TypeError, match="read"):
        type("Silent", (Scheme,), {"score": lambda self, p, s, tile: s}, name="silent")
    with pytest.raises(TypeError, match="everything|reads"):
        type("Odd", (Scheme,), {"reads": "everything"}, name="odd")
    with pytest.raises(ValueError, match="taken by"):
        type("Other", (Scheme,), {}, name="alibi")
