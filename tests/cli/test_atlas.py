"""`posenc atlas`: rows side by side from the table, and a scheme of one's own trained on the same probes."""

import json

import pytest

from posenc.lab.results import atlas_cells
from posenc.lab.results.results import load
from posenc.lab.run.worker import Worker
from posenc.lab.spec import atlas
from posenc.lab.spec.abilities import ability_of
from posenc.lab.spec.run import Plan, Run
from tests.lab.retuned import Recorder
from tests.lab.test_atlas_cells import cell
from tests.lab.test_sources import SCHEME

CELLS = (
    cell("rope", twice=0.5, four=0.25),
    cell("fox", twice=0.9, four=0.75, reach=2.0),
    cell("fox", probe="index", trained=0.4, reach=None, once=0.4, twice=0.3, four=0.2),
    cell("rope", model="encoder"),
)


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr("posenc.lab.cli.atlas.recorded_cells", lambda: CELLS)


def test_two_rows_stand_side_by_side_with_the_difference_at_twice_the_length(posenc, recorded, left):
    said = posenc("atlas", "rope", "fox", "--probes", "index,offset,count")
    assert said.code == 0 and not said.err and left() == []
    lines = said.out.splitlines()
    assert lines[0].split("  ")[0] == "probe" and lines[0].split()[-4:] == ["holds", "fox", "holds", "difference"]
    assert lines[1].split() == "offset .20 1.00 .50 .25 to 1.25 L 1.00 .90 .75 to 2 L +0.40".split()
    assert lines[2].split() == "index .20 – – .40 .30 .20 not learned –".split()
    assert lines[3].split() == "count – – – – – –".split(), "no run of either"
    assert "Decoders; rope 2 seeds × 2 rates; fox 2 seeds × 2 rates. Three numbers:" in said.out


def test_json_has_every_cell(posenc, recorded):
    rows = json.loads(posenc("atlas", "fox", "--json").out)
    assert [(r["row"], r["probe"], r["learned"]) for r in rows] == [("fox", "offset", True), ("fox", "index", False)]


def test_without_schemes_it_lists_the_probes_and_how_many_rows_are_measured(posenc, recorded):
    lines = posenc("atlas", "--model", "encoder").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [n for n, p in atlas.PROBES.items() if "encoder" in p.models]
    assert lines[1].split()[-1] == "1" and lines[2].split()[-1] == "0"


def test_a_scheme_that_equals_another_on_a_line_says_so(posenc, recorded):
    said = posenc("atlas", "mrope", "--probes", "offset")
    assert said.err == "mrope stands in the atlas as rope.\n" and "1.00 .50 .25" in said.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rope", "--probes", "ofset"], "No probe is called 'ofset'. Did you mean 'offset'?"),
        (["rope", "--probes", "order"], "The probe 'order' is not one of decoders; take offset, pointer,"),
        (["rop", "--probes", "offset"], "Did you mean 'rope'?"),
        (["fox", "--model", "encoder", "--probes", "offset"], "fox has no cell on token_k_back(k=3):"),
        (["rope(base=7.0)", "--seeds", "0"], "seeds is 0; it is how many"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(refuse, recorded, words, says):
    assert says in refuse("atlas", *words)


@pytest.fixture
def short(monkeypatch):
    """Two probes of four tokens, of two steps and of three, which small models train by one program."""
    offset = atlas.PROBES["offset"]._replace(length=4, steps=2)
    probes = {"offset": offset, "second": offset._replace(task="token_k_back(k=2)", steps=3)}
    monkeypatch.setattr(atlas, "PROBES", probes)
    monkeypatch.setattr(atlas_cells, "PROBE_OF", {probe.task: name for name, probe in probes.items()})
    monkeypatch.setattr(atlas, "PLAN", Plan(steps=2, seeds=(0, 1), lr=(1e-3, 3e-3), rows=2, segment=1))
    monkeypatch.setattr(atlas, "Run", lambda **own: Run(**own | {"depth": 1}))


def test_a_scheme_of_ones_own_is_trained_and_stands_under_the_control(
    posenc, recorded, short, fresh, tmp_path, monkeypatch
):
    """Groups are recorded at once; the next test trains them."""
    recorder = Recorder()
    monkeypatch.setattr(Worker, "carry_out", lambda worker, groups, _: recorder(worker.folder, groups))
    (tmp_path / "mine.py").write_text(SCHEME.format(rate=0.1))
    said = posenc("atlas", "mine:Mine", "--control", "fox")
    assert said.code == 0, said.err
    head, *lines = said.out.splitlines()
    assert head.split() == ["probe", "baseline", "fox", "holds", "mine", "holds", "difference"]
    assert [line.split()[0] for line in lines[:2]] == ["offset", "second"]
    assert "fox 1 seed × 2 rates or 2 seeds × 2 rates; mine 1 seed × 2 rates" in said.out
    assert lines[0].split()[2:5] == ["1.00", ".90", ".75"], "the control's record counts where it has one"
    trained = atlas_cells.atlas_cells(load(tmp_path / "runs" / "atlas_rows"))
    rows = {(c.row, c.probe, c.seeds, c.rates) for c in trained}
    assert rows == {("mine", "offset", 1, 2), ("mine", "second", 1, 2), ("fox", "second", 1, 2)}


@pytest.mark.ci
def test_a_scheme_of_ones_own_has_the_cells_of_the_model_asked_for(posenc, recorded, short, fresh, tmp_path):
    (tmp_path / "mine.py").write_text(SCHEME.format(rate=0.1))
    for model, control in (("encoder", "rope"), ("decoder", "fox")):
        said = posenc("atlas", "mine:Mine", "--control", control, "--probes", "offset", "--model", model, "--json")
        assert [(c["row"], c["model"]) for c in json.loads(said.out)] == [(control, model), ("mine", model)]


def test_a_probe_that_a_scheme_cannot_run_is_told_and_the_others_go_on(posenc, recorded, short):
    said = posenc("atlas", "rope(fraction=0.3)", "--probes", "offset,second", "--dry-run")
    assert said.code == 2 and said.err.count("has no cell on") == 2, "a part of the features that is no pair"


SEVERAL = (
    cell("rope", probe="count", twice=0.5),
    cell("fox", probe="count", twice=0.949, reach=2.0, rates_apart=0.3),
    cell("t5", probe="count", trained=0.8996, reach=None, twice=0.99),
    cell("lstm", probe="count", twice=0.97, reach=4.0),
    cell("rope", probe="parity", twice=0.5, floor=0.5),
    cell("fox", probe="parity", twice=0.5, reach=1.0, floor=0.5),
    cell("fox", probe="offset"),
)


def test_an_ability_is_answered_with_what_holds_what_does_not_and_what_to_take(posenc, monkeypatch):
    monkeypatch.setattr("posenc.lab.cli.atlas.recorded_cells", lambda: SEVERAL)
    lines = posenc("atlas", "--for", "counting").out.splitlines()
    heads = [line.partition(":")[0].strip() for line in lines if ":" in line]
    below, lost = "below .9 before 2 L", "not learned (in training)"
    expected = ["count", "at least .9 up to 4 L", "up to 2 L", below, lost, "parity", below, "Take", "How sure"]
    assert heads[1 : len(expected) + 1] == expected
    assert "LSTM (no attention) .97" in lines[2] and "fox .95" in lines[3] and "t5 .89" in lines[5], lines
    said = " ".join(" ".join(lines).split())
    assert "Take: for count, fox .95, up to 2 L; for parity, no scheme, since none is clear of the best" in said
    assert "4 rows, medians of 2 seeds × 2 rates" in said and "differ beyond L, by .20 or more: fox." in said
    found = json.loads(posenc("atlas", "--for", "counting", "--json").out)
    assert (
        found["probes"] == ["count", "parity"]
        and found["take"] == {"count": ["fox"], "parity": []}
        and len(found["cells"]) == 6
    )
    assert {row["metric"] for row in found["cells"]} == {"last"}
    for name in ("count", "count_symbol"):
        assert posenc("atlas", "--for", name).out.splitlines()[1] == lines[1]
    assert posenc("atlas", "rope", "fox", "--for", "counting").out.splitlines()[1].split()[0] == "count"


@pytest.mark.parametrize("ability", dict.fromkeys(map(ability_of, (probe.task for probe in atlas.PROBES.values()))))
@pytest.mark.parametrize("model", atlas.MODELS)
def test_an_answer_fits_twenty_lines_of_a_hundred_columns(posenc, refuse, ability, model):
    probes = [n for n, p in atlas.PROBES.items() if ability_of(p.task) == ability]
    if not any(model in atlas.PROBES[name].models for name in probes):
        assert "add --model" in refuse("atlas", "--for", ability, "--model", model)
        return
    lines = posenc("atlas", "--for", ability, "--model", model).out.splitlines()
    assert 5 < len(lines) <= 20 and max(map(len, lines)) <= 100 and any(line.startswith("Take: ") for line in lines)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--for", "countin"], "'counting'"),
        (["--for", "sorting"], "offset, index, order, counting, state, recall, copying"),
        (["--for", "bucket_sort"], "`posenc describe bucket_sort`"),
        (["--for", "order"], "--model encoder"),
        (["--for", "counting", "--probes", "count"], "--probes"),
        (["lstm", "--for", "count", "--model", "encoder"], "decoders"),
    ],
)
def test_what_the_atlas_cannot_answer_is_refused_in_a_sentence(refuse, words, says):
    assert says in refuse("atlas", *words)
