"""Published settings are runs as any other: what is said beside one overrides it, and what it leaves out is told."""

import dataclasses
import json
import re

import pytest

from posenc.lab.run.plan import rehearsed
from posenc.lab.spec.experiment import from_words
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.spec.presets import EVIDENCE, PRESETS
from posenc.lab.spec.run import Plan, Run
from posenc.lab.spec.toml import from_toml, to_toml
from posenc.lab.tasks import parse
from posenc.lab.train.training import resolve
from tests.cli.conftest import left as left  # fixtures
from tests.cli.conftest import posenc as posenc

EVERY = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)


def test_the_papers_are_those_of_the_laboratory():
    papers = ["ruoss", "kazemnejad", "zhou", "abacus", "coupling", "mqar", "based", "cope", "flipflop"]
    assert list(PRESETS) == [*papers, "quick_copy", "quick_reverse", "quick_addition"]
    assert all(name == preset.name for name, preset in PRESETS.items())


@EVERY
def test_a_preset_says_where_it_is_from_how_it_is_known_and_what_it_leaves_out(preset):
    if preset.name.startswith("quick_"):
        assert preset.source == "posenc, not a paper" and preset.evidence == ("run",)
    else:
        assert "(20" in preset.source and "arXiv" in preset.source
    assert preset.evidence and set(preset.evidence) <= set(EVIDENCE)
    assert preset.left_out and all(text and not text.endswith(".") for text in preset.left_out)


def test_numbers_of_a_paper_stand_as_they_were_published():
    """Read anew from the tables of settings, not from the code."""
    ruoss, coupling, zoology = PRESETS["ruoss"], PRESETS["coupling"], PRESETS["mqar"]
    assert (ruoss.run.depth, ruoss.run.width, ruoss.run.heads, ruoss.run.norm) == (5, 64, 8, "post")
    assert (ruoss.plan.lr, len(ruoss.plan.seeds), ruoss.plan.steps) == ((1e-4, 3e-4, 5e-4), 10, 10**6)
    assert (coupling.run.depth, coupling.run.heads, coupling.run.batch, coupling.plan.lr) == (1, 4, 1000, (1e-4,))
    spaced = [10 ** (-4 + 2 * n / 3) for n in range(4)]
    assert zoology.plan.lr == pytest.approx(spaced, rel=1e-2) and zoology.run.heads == 1
    based = PRESETS["based"]
    assert based.plan.lr == pytest.approx([10 ** (-3 + n / 2) for n in range(4)], rel=1e-2)
    assert based.plan.steps * based.run.batch == 32 * 180_000 and (based.run.width, based.run.heads) == (64, 1)
    assert [parse(preset.run.task).pairs for preset in (zoology, based)] == [16, 64], "the hardest of each"
    for preset, sizes in ((zoology, (256,)), (based, (256, 512, 1024))):
        assert (resolve(preset.run).run.shortest, preset.run.length, preset.plan.sizes) == (256, 256, sizes)
    assert zoology.plan.steps * zoology.run.batch == 64 * 100_000 and zoology.plan.rows == 3000
    assert PRESETS["kazemnejad"].run.width * 4 == PRESETS["kazemnejad"].run.hidden == 3072
    assert PRESETS["flipflop"].plan.warmup * PRESETS["flipflop"].plan.steps == 50


def test_a_paper_that_trains_on_so_many_examples_does_so_here_but_for_what_fills_no_batch():
    """Read anew from the tables of settings; the others draw fresh examples in every step."""
    few = {"kazemnejad": 10**5, "zhou": 3 * 10**7, "abacus": 2 * 10**7, "coupling": 10**6, "mqar": 10**5}
    few |= {"based": 180_000, "cope": 10**4}
    for name, preset in PRESETS.items():
        assert (preset.run.dataset is None) == (name not in few), name
        assert name not in few or 0 <= few[name] - preset.run.dataset < preset.run.batch, name
        assert "fresh" not in " ".join(preset.left_out)


def test_papers_that_draw_both_numbers_alike_do_so_here():
    assert {name for name, preset in PRESETS.items() if preset.run.uniform == "numbers"} == {
        *("kazemnejad", "abacus", "coupling")
    }


def test_what_the_released_evaluation_of_ruoss_does_otherwise_is_told_and_can_be_asked_for():
    """Traps of their example: what it scores, and with what."""
    told = " ".join(PRESETS["ruoss"].left_out)
    assert "dropout left on in evaluation" in told and "from size 42 on" in told
    words = [f"{name}={value}" for name, value in re.findall(r"--(\w+) ([\w:]+)", told)]
    assert sorted(words) == ["evaluation=as_trained", "sizes=42:501", "sizes=all"]
    made = from_words([], words[1:], preset="ruoss")
    assert made.runs[0].evaluation == "as_trained" and made.plan.sizes == tuple(range(42, 501))
    assert PRESETS["ruoss"].run.evaluation == "plain" and 42 not in PRESETS["ruoss"].plan.sizes


@EVERY
def test_a_preset_alone_is_its_own_run_and_plan(preset):
    made = from_words([], preset=preset.name)
    assert made.runs == (preset.run,) and made.plan == preset.plan and made.source == f"--preset {preset.name}"


@EVERY
def test_a_preset_names_a_task_a_scheme_and_sizes_that_there_are(preset):
    cell = resolve(preset.run)
    for size in preset.plan.sizes:
        cell.task.check_size(size)
    assert preset.run.longest is None or max(preset.plan.sizes) <= preset.run.longest


@pytest.mark.nightly  # models of the papers' sizes, traced though not run
@EVERY
def test_a_preset_can_run(preset):
    assert rehearsed(preset.run, preset.plan).run.length == preset.run.length


def test_what_is_said_beside_a_preset_overrides_it_and_all_else_stays():
    ruoss = PRESETS["ruoss"]
    made = from_words(["scheme=alibi,nope"], ["width=32", "batch=64"], seeds="2", preset="ruoss")
    assert made.runs == tuple(dataclasses.replace(ruoss.run, scheme=s, width=32, batch=64) for s in ("alibi", "nope"))
    assert made.plan == dataclasses.replace(ruoss.plan, seeds=(0, 1)) and Run().batch == 64, "its usual value too"


def test_the_command_line_takes_a_preset_and_says_what_it_leaves_out(posenc):
    small = ("--steps", "4", "--seeds", "1", "--lr", "1e-3", "--width", "16", "--heads", "2", "--batch", "2")
    said = posenc("run", "--preset", "flipflop", *small, "--length", "8", "--sizes", "8", "--dry-run")
    assert said.code == 0 and "1 trial in" in said.out
    assert said.err.startswith("Liu et al. (2023)") and "from memory of the paper" in said.err
    assert all(text in said.err for text in PRESETS["flipflop"].left_out)


@pytest.mark.ci
def test_a_toml_file_may_start_from_a_preset(posenc, tmp_path):
    text = 'preset = "ruoss"\n[run]\nwidth = 32\ntask = "suite:chomsky"\nscheme = "nope"\n[plan]\nseeds = 2\n'
    made = from_toml(text)
    words = from_words(["task=suite:chomsky", "scheme=nope"], ["width=32"], seeds="2", preset="ruoss")
    assert made.runs == words.runs and made.plan == words.plan and len(made.runs) == 15
    assert from_toml(to_toml(made)).runs == made.runs, "written out, it needs no preset"
    small = "[run]\nwidth = 16\ndepth = 1\nheads = 2\nlength = 4\nlongest = 8\n[plan]\nsizes = [5]\n"
    (tmp_path / "small.toml").write_text(f'preset = "ruoss"\n{small}')
    said = posenc("sweep", "small.toml", "--dry-run")
    assert said.code == 0 and all(text in said.err for text in PRESETS["ruoss"].left_out)


def test_a_python_file_that_says_preset_is_told_how_to_start_from_one(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from posenc.lab.spec.run import Run\npreset = 'ruoss'\ndef runs():\n    return [Run()]\n")
    with pytest.raises(ValueError, match="start from `posenc.lab.spec.presets.PRESETS`"):
        from_file(path)


def test_without_a_preset_nothing_changes(posenc):
    assert from_words([]).runs == (Run(),) and from_words([]).plan == Plan()
    said = posenc("run", "--dry-run", "--steps", "2", "--width", "16")
    assert said.code == 0 and said.err == "" and "3 trials" in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--preset", "rouss"), "Did you mean 'ruoss'?"),
        (("run", "--preset", "ruoss", "--length", "1000"), "tables must hold length"),
        (("sweep", "some.py", "--preset", "ruoss"), "'some.py'"),
    ],
)
def test_a_preset_that_cannot_be_is_refused_in_a_sentence(posenc, left, words, said):
    found = posenc(*words)
    assert found.code == 2 and said in found.err and found.err.count("\n") == 1 and left() == []


def test_presets_are_listed_with_their_settings(posenc):
    rows = json.loads(posenc("list", "presets", "--json").out)
    assert [row["name"] for row in rows] == list(PRESETS)
    assert rows[0]["settings"]["run"]["depth"] == 5 and rows[0]["settings"]["left_out"]
    table = posenc("list", "presets").out
    assert table.startswith("name") and "settings" not in table and "--preset ruoss" in table
