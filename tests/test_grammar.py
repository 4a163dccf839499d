"""Text to tree and back, and every other text refused in one sentence."""

import keyword
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from posenc.language.grammar import LONGEST, Call, Located, Period, Shared, Sum, modules, read, write

CALM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
NAMES = some.text(string.ascii_lowercase + "_", min_size=1, max_size=6).filter(lambda s: not keyword.iskeyword(s))
ATOMS = (
    some.none()
    | some.booleans()
    | some.integers(-(10**12), 10**12)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=8)
)
VALUES = some.recursive(ATOMS, lambda inner: some.lists(inner, max_size=3).map(tuple), max_leaves=5)
CLASSES = some.builds(
    lambda module, name: f"{'.'.join(module)}:{name}", some.lists(NAMES, min_size=1, max_size=2), NAMES
)
CALLS = some.builds(
    Call,
    NAMES | CLASSES,
    some.lists(VALUES, max_size=2).map(tuple),
    some.dictionaries(NAMES, VALUES, max_size=2).map(lambda d: tuple(d.items())),
)
SUMS = some.lists(CALLS | some.builds(Located, CALLS, CALLS), min_size=2, max_size=4).map(
    lambda parts: Sum(tuple(parts))
)
SHARES = some.lists(some.tuples(CALLS | SUMS, some.integers(1, 99)), min_size=2, max_size=3).map(
    lambda shares: Shared(tuple(shares))
)
LAYERS = some.lists(CALLS | SUMS | SHARES, min_size=1, max_size=3).map(lambda layers: Period(tuple(layers)))
TREES = some.one_of(CALLS, SUMS, some.builds(Located, CALLS | SUMS | SHARES, CALLS), LAYERS, SHARES)


def same(a, b):
    """Equality that tells 1 from True and from 1.0."""
    return a == b and repr(a) == repr(b)


@pytest.mark.ci
@CALM
@given(TREES)
def test_a_tree_that_is_written_reads_as_itself(tree):
    text = write(tree)
    if len(text) <= LONGEST:
        assert same(read(text), tree)


@pytest.mark.ci
@CALM
@given(some.text(max_size=40) | some.text("rope()[]{}+@,='\"1.e-* \n\t#:;", max_size=30))
def test_any_text_is_read_or_refused_in_one_sentence(text):
    try:
        tree = read(text)
    except ValueError as refusal:
        assert type(refusal) is ValueError and str(refusal).endswith("."), refusal
        assert refusal.__cause__ is None and "Traceback" not in str(refusal)
    else:
        assert same(read(write(tree)), tree)


@pytest.mark.parametrize(
    ("text", "tree", "named"),
    [
        ("mine:Mine", Call("mine:Mine"), ["mine"]),
        ("a.b:C(x=1) @ d:E(2)", Located(Call("a.b:C", (), (("x", 1),)), Call("d:E", (2,))), ["a.b", "d"]),
        ("[m:N, m:N + _0]", Period((Call("m:N"), Sum((Call("m:N"), Call("_0"))))), ["m", "m"]),
        ("rope(x='a:b', y=\"it's c:d\")", Call("rope", (), (("x", "a:b"), ("y", "it's c:d"))), []),
        ("rope(x='''it's a:b''') + m:N", Sum((Call("rope", (), (("x", "it's a:b"),)), Call("m:N"))), ["m"]),
        ("rope(x='# it''s a:b')", Call("rope", (), (("x", "# its a:b"),)), []),
        ("__ + ___0 + m:N", Sum((Call("__"), Call("___0"), Call("m:N"))), ["m"]),
    ],
)
def test_a_class_in_a_module_is_a_name_outside_strings(text, tree, named):
    assert read(text) == tree == read(write(tree)) and list(modules(tree)) == named


@pytest.mark.parametrize(
    "text",
    ["m:", ":N", "m :N", "m: N", "m:N.x", "m:N:x", "m:1", "1:N", "m:if", "lambda:x", "x[m:N]", "{m:N}", "(m:=N)",
     "rope(x=m:N)", "rope(m:N)", "m:N - rope", "-m:N", "m:N @ [rope]", "m::N", "m/n:N", "m.py/:N"],
)  # fmt: skip
def test_a_colon_elsewhere_is_refused_in_one_sentence(text):
    with pytest.raises(ValueError, match="(?s)'rope") as refusal:
        read(text)
    assert "_0" not in str(refusal.value), "the sentence has the text as it was typed"


@pytest.mark.parametrize(
    "text",
    [
        "rope(base=1e999)", "rope(base=-1e999)", "rope(base=inf)", "rope(base=nan)", "rope(base=float('inf'))",
        "rope(base=1, base=2)", "rope(**{'base': 1})", "rope(*[1])", "posenc.rope", "rope.base", "rope(base=a.b)",
        "__import__('os')()", "(lambda: 0)()", "rope if 1 else nope", "rope and nope", "rope - nope", "rope * 3",
        "-rope", "rope(base=+1)",
        "rope[0]", "{rope}", "{'a': 1}", "rope + 3", "rope @ 3", "3", "'rope'", "rope(base=[1])", "rope(base=1j)",
        "rope(base=b'x')", "rope(base=...)", "rope(base=1 + 1)", "rope(base=10**5)", "rope(base=f'{1}')",
        "rope(base=x)",
        "rope(base=-True)", "rope(base=--1)", "rope(base=(x := 1))", "[]", "[*rope]", "rope @ index @ index",
        "rope @ (index + index)", "[rope] @ index", "rope @ [index]", "rope;nope", "rope\nnope", "rope = 1",
        "import os", "rope(", ")", "rope nope", "\x00", "rope\x00", "await rope", "(yield)", "rope(x for x in y)",
    ],
)  # fmt: skip
def test_what_is_no_name_call_sum_or_list_is_refused(text):
    with pytest.raises(ValueError, match=r"(?s)'rope\(base=500000.0\) \+ alibi'"):
        read(text)


@pytest.mark.parametrize(
    "text", ["rope # + alibi", "rope( # it's\nx='a:b')", "[rope # , nope]\n]", "rope#", "rope('#') # x", "m:N # + n:O"]
)
def test_a_comment_is_refused_since_every_part_of_a_text_counts(text):
    with pytest.raises(ValueError, match="(?s)comment"):
        read(text)


@pytest.mark.parametrize(
    "text", ["x" * 3000 + "(", "rope(" + "1 + " * 900 + "1)", "1" * 3000, "a(b=1, b=2, c='" + "x" * 3000 + "')"]
)
def test_long_texts_are_cut_in_messages(text):
    with pytest.raises(ValueError, match="read") as refusal:
        read(text)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_nothing_is_refused(text):
    with pytest.raises(ValueError, match="empty"):
        read(text)


def test_a_text_of_any_depth_or_length_is_refused_without_a_crash():
    for text in ("(" * 2000 + "rope" + ")" * 2000, "[" * 500 + "]" * 500, "rope" + "(" * 900, "-" * 4000 + "1"):
        with pytest.raises(ValueError, match="read"):
            read(text)
    with pytest.raises(ValueError, match=f"is {LONGEST + 1} characters long; at most {LONGEST}"):
        read("r" * (LONGEST + 1))
    read("+".join(["rope"] * 100))


def test_at_binds_tighter_than_plus_and_sums_are_flat():
    a, b, c = Call("a"), Call("b"), Call("c")
    assert read("a + b @ c") == Sum((a, Located(b, c)))
    assert read("(a + b) @ c") == Located(Sum((a, b)), c)
    assert read("a + (b + c)") == read("(a + b) + c") == Sum((a, b, c))
    assert write(Sum((a, Located(Sum((b, c)), a)))) == "a + (b + c) @ a"
