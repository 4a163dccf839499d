"""What weight decay acts on in every kind of model, against written tables."""

import re

import jax
import pytest

from posenc.lab.models import stems
from posenc.lab.models.interface import build
from posenc.lab.models.weights import EXCEPTIONS, decaying
from posenc.naming import bind, names, parse
from tests.models.cases import TEXTS, shaped

ENDS = {"embedding", "readout"}
BLOCK = {f"blocks 0 {name}" for name in ("attention query", "attention key_value", "attention out", "up", "down")}
CELL = {"dense_i kernel", "dense_h kernel"}
WRITER = {f"writer blocks 0 across {name}" for name in ("query", "key_value", "out")} | {
    f"writer {name.replace('blocks 0', 'blocks 0 block')}" for name in BLOCK
}


def recurrent(*directions):
    return {f"blocks {n} {way} {kernel}" for n in (0, 1) for way in directions for kernel in CELL}


ONE_WAY, BOTH_WAYS = recurrent("ahead"), recurrent("ahead", "back")
TABLE = {
    "averaging": {"inner"},
    "averaging(bidirectional=True)": {"inner"},
    "convolution": {"blocks filters"},
    "convolution(bidirectional=True)": {"blocks filters"},
    "decoder": BLOCK,
    "encoder": BLOCK,
    "encoder_decoder": {f"{side} {name}" for side in ("reader", "writer") for name in ENDS}
    | {f"reader {name}" for name in BLOCK}
    | WRITER,
    **dict.fromkeys(("gru", "lstm", "rnn"), ONE_WAY),
    **dict.fromkeys((f"{cell}(bidirectional=True)" for cell in ("gru", "lstm", "rnn")), BOTH_WAYS),
    "rnnsearch": BOTH_WAYS
    | {f"writer {kernel}" for kernel in CELL}
    | {"from_state", "from_source", "to_score", "start", "output"},
}
TABLE = {text: labelled if text == "encoder_decoder" else labelled | ENDS for text, labelled in TABLE.items()}
"""The weights of every model of depth 2 under a scheme without parameters; a Transformer stacks its layers."""
POSITIONAL = {
    "cope": {"embedding"},
    "deberta": {"query"},
    "path": {"down", "up"},
    "selective_rope": {"down", "up"},
    "tupe": {"query"},
}


def labelled(text, scheme="nope", **change):
    """The parameters that weight decay acts on, and the others, as words of their paths."""
    shape = shaped(text, **change)
    parsed = parse(scheme)
    bound = parsed if shape.model.binds else bind(parsed, shape.dims)
    model = jax.eval_shape(lambda key: build(bound, shape, key), jax.random.key(0))
    found = {True: set(), False: set()}
    for path, decays in jax.tree_util.tree_leaves_with_path(decaying(model)):
        found[decays].add(re.sub(r"\W+", " ", jax.tree_util.keystr(path)).removesuffix(" value").strip())
    return found[True], found[False]


def test_every_model_has_a_table():
    assert TABLE.keys() == set(TEXTS)


@pytest.mark.parametrize("text", TEXTS)
def test_the_weights_of_a_model_decay_and_nothing_else_does(text):
    assert labelled(text)[0] == TABLE[text]


@pytest.mark.guard
@pytest.mark.parametrize("stem", ["conv", "gru", "shift"])
@pytest.mark.parametrize("text", ["averaging", "decoder", "encoder"])
def test_stems_do_not_decay(text, stem):
    decayed, others = labelled(text, stem=stems.parse(stem))
    assert decayed == TABLE[text] and any(path.startswith("stem ") for path in others)


@pytest.mark.ci
def test_of_positional_parameters_only_the_written_exceptions_decay():
    found = {}
    for scheme in names():
        decayed = labelled("decoder", scheme)[0] - TABLE["decoder"]
        assert all(re.match(r"tied|blocks 0 attention position", path) for path in decayed), decayed
        if decayed:
            found[scheme] = {path.split()[-1] for path in decayed}
    assert found == POSITIONAL == {scheme: set(parameters) for scheme, parameters in EXCEPTIONS.items()}


def test_the_exceptions_hold_for_their_scheme_within_a_sum_and_across_sequences():
    plain, others = labelled("decoder", "kerple + cope")
    assert plain - TABLE["decoder"] == {path for path in plain | others if path.endswith(" embedding")}
    decayed, _ = labelled("encoder_decoder", "deberta")
    sides = {path.split(" blocks")[0] for path in decayed - TABLE["encoder_decoder"]}
    assert {"reader", "writer"} <= sides


def test_the_weights_of_additive_attention_decay_beside_a_scheme_that_does_not():
    decayed, others = labelled("decoder", "kerple", attention="additive")
    assert {path.split()[-1] for path in decayed - TABLE["decoder"]} == {"from_query", "from_key", "to_score"}
    assert any("position" in path for path in others)
