"""The numbers that the Results of the atlas quote, read from its records in the order of the text."""

from statistics import median

from posenc.lab.results.atlas_cells import atlas_cells
from posenc.lab.spec.experiment_file import from_file
from tests.hits import FOLDER

SIDED = ("alibi(form='half', factor=64.0)", "alibi(form='split', factor=64.0)")
SIGNED = ("log_cpb", "convit(axes=1)", "shaw", "music_transformer", "deberta(reach=16)", "transformer_xl")
RANDOM = "rope @ random_sorted(limit=128)"


def of_atlas(at):
    """From the cells, as the figure and the tables have them."""
    cells, trained = _by_probe(at)
    assert {probe: (len(of), *_held(of, 1, 2, 4)) for probe, of in trained.items()} == {
        "offset": (46, 39, 25, 20),
        "pointer": (46, 29, 15, 13),
        "distance": (46, 41, 4, 1),
        "index": (46, 43, 25, 13),
        "look-up": (46, 26, 6, 5),
        "count": (46, 43, 12, 0),
        "memory": (46, 42, 22, 18),
        "copy": (46, 45, 6, 1),
        "reverse": (46, 42, 2, 1),
        "parity": (46, 34, 3, 1),
    }
    rows = {cell.row for cell in trained["offset"]}
    far = {n: {row: sum((of[row].reach or 0) >= n for of in cells.values()) for row in rows} for n in (2, 4)}
    held = {(times, n): {row for row in rows if far[times][row] == n} for times in (2, 4) for n in (4, 6, 8)}
    assert held[2, 8] == {"path"} and held[2, 6] == {"shaw", "lstm", "gru"} and sorted(far[2].values())[-2] == 6
    assert held[4, 4] == {"shaw", "convit(axes=1)", "path", "gru"} and max(far[4].values()) == 4
    yield "0.9"
    yield from _of_offset(at, cells["offset"], trained["offset"])
    yield from _of_pointer(cells["pointer"])
    marks, index = cells["distance"], cells["index"]
    yield from (marks["nope"].once, marks["shaw"].four, marks["stick_breaking"].four, marks["rope"].twice)
    yield from (index[row].four for row in ("learned", "nope", "t5(buckets=16, reach=16)", "kerple"))
    gates = "fox", "stick_breaking", "sandwich"
    assert all(cells["offset"][row].reach >= 4 and not index[row].learned for row in gates)
    yield from (index[row].once for row in gates)
    yield from (index["rope"].twice, index["rope(base=10.0)"].twice)
    yield from _of_look_up(cells["look-up"])
    yield from _of_count(cells["count"], trained["count"])
    yield from _of_memory(at, cells["memory"], trained["memory"])
    yield from _of_copies(cells["copy"], trained["copy"])
    yield from _of_copies_backwards(cells["reverse"], trained["reverse"])
    yield from _of_parity(cells["parity"], trained["parity"])
    yield from _rates_apart(trained, 51, ("grape_m", "offset"))


def _rates_apart(trained, count, most):
    """In how many cells rates that tie differ, and by how much where they do most."""
    apart = sorted((cell.rates_apart, cell.row, probe) for probe, of in trained.items() for cell in of)
    assert sum(rates >= 0.2 for rates, _, _ in apart) == count and apart[-1][1:] == most
    yield from ("0.2", apart[-1][0])


def _by_probe(at):
    """Probe to its cells by row, and to those of rows that were trained."""
    cells = {}
    for cell in atlas_cells(at.results):
        cells.setdefault(cell.probe, {})[cell.row] = cell
    return cells, {probe: [c for row, c in of.items() if ", trained with" not in row] for probe, of in cells.items()}


def _held(cells, *times):
    """How many rows hold 0.9 so many times as far as they were trained."""
    return [len(_held_to(cells, least)) for least in times]


def _held_to(cells, times):
    """Rows that hold 0.9 so many times as far as they were trained."""
    return {cell.row for cell in cells if (cell.reach or 0) >= times}


def _unlearned(cells):
    """Rows that do not learn what they were trained on."""
    return {cell.row for cell in cells if not cell.learned}


def _of_offset(at, cells, trained):
    """The token back: what is added to the input, RoPE, FIRE, and slow learning."""
    back, slow = "token_k_back(k=3)", ("alibi", "kerple", "grape_ap")
    absolute, rope = [cell for cell in trained if cell.family == "absolute"], cells["rope"]
    assert len(absolute) == 6 and {cell.reach for cell in absolute} == {1}
    far = ("alibi(factor=64.0)", "fox", "stick_breaking", "xpos", "shaw", "sandwich")
    assert all(cells[row].reach >= 4 for row in far)
    yield from (max(cell.twice for cell in absolute), rope.floor, rope.twice, rope.four, cells["rope(base=10.0)"].four)
    yield from (cells["by_parts, trained with rope"].four, cells["ntk, trained with rope"].four)
    yield from (cells["fire"].once, cells["fire"].twice, *(cells[row].trained for row in slow))
    yield from (at.half(back, f"{row} (model=decoder)") for row in slow)


def _of_pointer(cells):
    """Scores in which content and distance meet, biases by distance alone, gates, RoPE."""
    joined = "shaw transformer_xl music_transformer inkling cope xpos".split() + ["kerple + dape", "kerple + dape_v2"]
    biases = ("t5(buckets=16, reach=16)", "alibi", "alibi(factor=64.0)", "kerple", "sandwich", "fire")
    yield min(cells[row].four for row in joined)
    assert not any(cells[row].learned for row in biases) and max(biases, key=lambda row: cells[row].once) == "fire"
    yield from (cells[row].once for row in ("fire", "log_cpb", "fox", "stick_breaking"))
    yield cells["rope"].twice


def _of_look_up(cells):
    """Those that hold it to 4 L, PaTH, RoPE beside its floor, two that do not learn it."""
    assert round(cells["learned"].four, 2) == round(cells["stick_breaking"].four, 2)
    assert round(cells["shaw"].four, 2) == round(cells["fourier"].four, 2)
    assert all(cells[row].reach >= 4 for row in ("learned", "stick_breaking", "shaw", "fourier", "fope"))
    yield from (cells[row].four for row in ("learned", "fourier", "fope"))
    yield from (cells["path"].twice, cells["rope"].once, cells["rope"].twice, cells["rope"].four, cells["rope"].floor)
    unlearned = "fox", "t5(buckets=16, reach=16)"
    assert not any(cells[row].learned for row in unlearned)
    yield from (cells[row].once for row in unlearned)


def _of_count(cells, trained):
    """Those that do not learn it, those that hold it to 2 L, the best at 4 L."""
    local = ("alibi(factor=64.0)", "sandwich", "convit(axes=1)")
    assert _unlearned(trained) == {*local}
    yield from (*(cells[row].once for row in local), cells["rope"].floor)
    assert len(_held_to(trained, 2) - {"lstm", "gru"}) == 10
    t5, broken = cells["t5(buckets=16, reach=16)"].twice, cells["stick_breaking"].twice
    assert round(t5, 2) == round(broken, 2)
    yield from (t5, cells["log_cpb"].twice, cells["nope"].twice, cells["rope"].twice)
    best = sorted(trained, key=lambda cell: -cell.four)[:3]
    assert [cell.row for cell in best] == ["gru", "lstm", "selective_rope"]
    yield from (cell.four for cell in best)


def _of_memory(at, cells, trained):
    """Those that keep the bit to 4 L, those to 2 L, RoPE and learned vectors beside a guess, those that do not learn it
    and what their losses still fell by."""
    far = ("alibi", "kerple", "stick_breaking", RANDOM)
    near, unlearned = ("fire", "shaw", "cope"), ("nope", "repo", "t5(buckets=16, reach=16)", "tapa")
    assert all(cells[row].reach >= 4 for row in (*far, "sandwich", "fox", "path"))
    assert all(cells[row].reach == 2 for row in near)
    assert _unlearned(trained) == {*unlearned}
    yield from (*(cells[row].four for row in far), *(cells[row].twice for row in (*near, "rope", "learned")))
    yield from (cells["rope"].floor, *(cells[row].once for row in unlearned))
    yield from (at.half("flip_flop", f"{row} (model=decoder)") for row in unlearned)


def _of_copies(cells, trained):
    """The one that does not learn them, those that hold them to 2 L, others there, ConViT at 4 L."""
    assert [cell.row for cell in trained if not cell.learned] == ["tapa"]
    yield cells["tapa"].trained
    held = ("convit(axes=1)", "kerple + dape_v2", "sandwich", "grape_a", "kerple", "kerple + dape")
    assert _held_to(trained, 2) == {*held}
    assert round(cells["sandwich"].twice, 2) == round(cells["grape_a"].twice, 2)
    yield from (cells[row].twice for row in ("convit(axes=1)", "kerple + dape_v2", "sandwich", "kerple"))
    yield from (cells[row].twice for row in ("alibi", "nope", "learned", "rope"))
    yield from (cells["rope"].floor, cells["convit(axes=1)"].four)


def _of_copies_backwards(cells, trained):
    """Those that do not learn them, those that hold them to 2 L, others there."""
    unlearned = ["nope", "repo", RANDOM]
    assert _unlearned(trained) == {*unlearned, "tapa"}
    assert len({round(cells[row].trained, 2) for row in unlearned}) == 1
    held = "path", "kerple + dape_v2"
    assert _held_to(trained, 2) == {*held}
    yield from (cells["nope"].trained, cells["tapa"].trained, cells["path"].twice, cells["path"].four)
    best = sorted((cell for cell in trained if cell.row not in (*held, "kerple + dape")), key=lambda cell: -cell.twice)
    assert [cell.row for cell in best[:3]] == ["convit(axes=1)", "fire", "sandwich"]
    yield from (cells["kerple + dape_v2"].twice, *(cell.twice for cell in best[:3]))
    yield from (cells[row].twice for row in ("alibi", "rope", "learned"))


def _of_parity(cells, trained):
    """RoPE, the best of those that guess, those that carry a state, three that do not learn it."""
    states = "path", "gru", "lstm"
    assert _held_to(trained, 2) == {*states}
    yield from (cells["rope"].once, max(cell.twice for cell in trained if cell.row not in states))
    yield from (*(cells[row].twice for row in states), cells["gru"].four, cells["path"].four)
    unlearned = "learned", "t5(buckets=16, reach=16)", "convit(axes=1)"
    assert not any(cells[row].learned for row in unlearned)
    yield from (cells[row].once for row in unlearned)


def of_atlas_encoders(at):
    """From the cells, probe by probe."""
    cells, trained = _by_probe(at)
    assert {probe: (len(of), *_held(of, 1, 2, 4)) for probe, of in trained.items()} == {
        "offset": (34, 23, 13, 10),
        "order": (34, 29, 12, 7),
        "pointer": (34, 26, 13, 12),
        "distance": (34, 23, 7, 3),
        "look-up": (34, 12, 2, 2),
        "index": (34, 25, 3, 2),
        "count": (34, 31, 4, 0),
        "parity": (34, 26, 0, 0),
    }
    yield from _offset_of_encoders(at, cells["offset"], trained["offset"])
    yield from _order_of_encoders(at, cells["order"], trained["order"])
    yield from _pointer_of_encoders(at, cells["pointer"], trained["pointer"])
    yield from _distance_of_encoders(at, cells["distance"], trained["distance"])
    yield from _look_up_of_encoders(at, cells["look-up"], trained["look-up"])
    yield from _index_of_encoders(at, cells["index"], trained["index"])
    yield from _count_of_encoders(at, cells["count"], trained["count"])
    yield from _parity_of_encoders(at, cells["parity"], trained["parity"])
    yield from _rates_apart(trained, 20, ("sinusoidal", "look-up"))


def _offset_of_encoders(at, cells, trained):
    """The token back: alike on both sides and not, RoPE, slow learning."""
    alike = ("alibi", "alibi(factor=64.0)", "kerple", "kerple + dape", "sandwich", "fire")
    others = ("pope", RANDOM, "nope", "repo", "tapa")
    assert _unlearned(trained) == {*alike, *others}
    assert round(cells["nope"].trained, 2) == round(cells["repo"].trained, 2)
    assert _held_to(trained, 4) - {"liere(axes=1)"} == {*SIDED, *SIGNED, "rope(base=10.0)"}
    yield "0.9"
    yield from (cells[row].trained for row in alike)
    yield min(cells[row].four for row in SIDED)
    yield min(cells[row].four for row in (*SIGNED, "rope(base=10.0)"))
    yield from (cells["rope"].twice, cells["rope"].four, _best_at_input(trained), cells["rope"].floor)
    yield from (cells[row].trained for row in others[:2])
    yield from (at.half("token_k_back(k=3)", row) for row in others[:2])
    yield from (cells["nope"].trained, cells["tapa"].trained)


def _order_of_encoders(at, cells, trained):
    """Of two marks: what prefers the nearest, RoPE, what guesses, slow learning."""
    slow = ("tapa", "fope", "hope")
    assert _unlearned(trained) == {"nope", "repo", *slow}
    assert cells["nope"].trained == cells["repo"].trained
    yield from (cells[row].four for row in ("fire", "kerple", "sandwich", SIDED[1], RANDOM, "rope"))
    yield from (cells["longrope, trained with rope"].four, _best_at_input(trained), cells["rope"].floor)
    yield from (cells[row].trained for row in ("nope", *slow))
    yield from (at.half("before", row) for row in slow)


def _pointer_of_encoders(at, cells, trained):
    """Penalties alike on both sides, which the token back refuses; RoPE; those that do not learn it."""
    alike = ("alibi(factor=64.0)", "kerple", "kerple + dape", "sandwich")
    assert _held_to(trained, 4) == {*alike, *SIDED, *SIGNED}
    assert round(cells["kerple"].four, 2) == round(cells["kerple + dape"].four, 2)
    yield from (cells[row].four for row in (alike[0], "kerple", "sandwich", "liere(axes=1)", "rope(base=10.0)"))
    yield from (cells["rope"].twice, cells["rope"].floor, _best_at_input(trained))
    unlearned = ("alibi", "complex_order", "t5(buckets=16, reach=16)", RANDOM, "binary", "tapa", "nope", "repo")
    assert _unlearned(trained) == {*unlearned}
    yield from (cells[row].trained for row in unlearned)
    yield _least_fall(at, "pointer_back(reach=4)", unlearned[:-2], steady=unlearned[-2:])


def _distance_of_encoders(at, cells, trained):
    """Those that hold it, what is added to the input, biases by distance alone, those that do not learn it."""
    turns, held = ("hope", "fope", "rope"), ("convit(axes=1)", "shaw", "music_transformer")
    assert {*turns} < _held_to(trained, 2) and _held_to(trained, 4) == {*held}
    yield from (cells[row].twice for row in turns)
    yield from (cells[row].four for row in held)
    yield _best_at_input(trained)
    yield from (cells[row].twice for row in ("log_cpb", "kerple"))
    alone = ("sandwich", SIDED[0], "alibi(factor=64.0)", "alibi", SIDED[1], "fire", "t5(buckets=16, reach=16)")
    others = (RANDOM, "tapa", "nope", "repo")
    assert _unlearned(trained) == {*alone, *others}
    assert round(cells["nope"].trained, 2) == round(cells["repo"].trained, 2)
    yield from (cells[row].trained for row in (*alone, *others[:-1]))
    yield _least_fall(at, "distance(reach=8)", (*alone[:-1], RANDOM), steady=(alone[-1], *others[1:]))


def _look_up_of_encoders(at, cells, trained):
    """Those that hold it to 4 L, the next at 2 L, RoPE, those that do not learn it, of which five no longer fall."""
    held, steady = ("learned", "fourier"), ("nope", "repo", "fope", "hope", "tupe")
    assert _held_to(trained, 2) == _held_to(trained, 4) == {*held}
    yield from (cells[row].four for row in held)
    others = sorted((cell for cell in trained if cell.row not in held), key=lambda cell: -cell.twice)[:3]
    assert [cell.row for cell in others] == ["sinusoidal", "complex_order", "shaw"]
    yield from (*(cell.twice for cell in others), cells["rope"].twice, cells["rope"].floor)
    unlearned = sorted((cell for cell in trained if not cell.learned), key=lambda cell: -cell.trained)
    assert [cell.row for cell in unlearned[:2]] == ["binary", RANDOM]
    assert len({round(cells[row].trained, 2) for row in steady[:4]}) == 1
    yield from (*(cell.trained for cell in unlearned[:2]), cells["nope"].trained, cells["tupe"].trained)
    falling = [cell.row for cell in unlearned if cell.row not in steady]
    yield _least_fall(at, "token_at_index(indices=4)", falling, steady)


def _index_of_encoders(at, cells, trained):
    """Those that hold it, the next at 2 L, RoPE, those that do not learn it."""
    held = ("learned", "fourier", "sinusoidal")
    assert _held_to(trained, 2) == {*held} and _held_to(trained, 4) == {*held[:2]}
    assert round(cells["learned"].twice, 2) == round(cells["fourier"].twice, 2)
    yield from (cells["learned"].twice, cells["sinusoidal"].twice, *(cells[row].four for row in held[:2]))
    others = sorted((cell for cell in trained if cell.row not in held), key=lambda cell: -cell.twice)[:3]
    assert [cell.row for cell in others] == ["convit(axes=1)", "complex_order", "binary"]
    yield from (*(cell.twice for cell in others), cells["rope"].twice, cells["rope"].floor)
    unlearned = ("alibi(factor=64.0)", RANDOM, "t5(buckets=16, reach=16)", "fope", "sandwich", "hope")
    steady = ("tapa", "nope", "repo")
    assert _unlearned(trained) == {*unlearned, *steady}
    yield from (cells[row].trained for row in (*unlearned, *steady))
    yield _least_fall(at, "index_of_token(indices=8)", unlearned, steady)


def _count_of_encoders(at, cells, trained):
    """Those that hold it to 2 L, the best at 4 L, RoPE and learned vectors, those that do not learn it."""
    held = ("hope", "nope", "repo", "fope")
    assert _held_to(trained, 2) == {*held}
    yield from (cells[row].twice for row in held)
    yield from (max(cell.four for cell in trained), cells["kerple"].twice, cells["rope"].twice, cells["learned"].twice)
    unlearned = ("sandwich", "convit(axes=1)", SIDED[1])
    assert _unlearned(trained) == {*unlearned}
    yield from (cells[row].trained for row in unlearned)
    yield _least_fall(at, "count_symbol", unlearned)


def _parity_of_encoders(at, cells, trained):
    """The best at 2 L beside a guess, and the best and the least of those that do not learn it."""
    yield from (max(cell.twice for cell in trained), cells["rope"].floor)
    unlearned = sorted((cell for cell in trained if not cell.learned), key=lambda cell: cell.trained)
    assert (unlearned[0].row, unlearned[-1].row) == ("binary", "t5(buckets=16, reach=16)")
    yield from (unlearned[-1].trained, unlearned[0].trained)
    yield _least_fall(at, "parity_check", [cell.row for cell in unlearned])


def _least_fall(at, task, rows, steady=()):
    """By how many percent the losses of rows still fell at least, while those of others no longer did."""
    assert {row for row in (*rows, *steady) if (task, row) in at.halves} == {*rows}
    return min((at.half(task, row) for row in rows), key=int)


def _best_at_input(cells):
    """The most at 2 L of what is added to the input, none of which holds so far."""
    absolute = [cell for cell in cells if cell.family == "absolute"]
    assert len(absolute) == 6 and max(cell.reach or 0 for cell in absolute) < 2
    return max(cell.twice for cell in absolute)


def of_atlas_contrasts(at):
    """Of decoders the last token of an offset, since a mean hides where it stops; of encoders, whose last token sees
    one side, those beyond training."""
    back, copy, reverse, bit = "token_k_back(k=3)", "copy(symbols=16)", "reverse(symbols=16)", "flip_flop"
    alibi, half = "alibi(factor=64.0)", "alibi(form='half', factor=64.0) (model=encoder)"
    last = {
        scheme: at.seeds(back, f"{scheme} (model=decoder)", "last")
        for scheme in (alibi, "fire", "rope", "hope", "fope", "kerple")
    }
    assert min(median(of[16]) for scheme, of in last.items() if scheme != "kerple") >= 0.99
    yield "0.99"
    yield from (median(last[scheme][64]) for scheme in (alibi, "fire", "rope", "hope", "fope"))
    yield from (median(last["kerple"][16]), at.half(back, "kerple (model=decoder)"))
    yield from (at.cell(back, f"{alibi} (model=encoder)", 64), at.cell(back, half, 64))
    for task, first in ((copy, "nope"), (reverse, RANDOM)):
        ours, plain = (at.seeds(task, f"{scheme} (model=decoder)", "accuracy") for scheme in (first, "rope"))
        yield from (median(ours[8]), at.half(task, f"{first} (model=decoder)"), median(ours[16]))
        yield from (median(plain[8]), median(plain[16]))
    yield from (at.cell(bit, f"{s} (model=decoder)", 128) for s in ("path", "fox", "stick_breaking", "cope", "rope"))
    yield from (at.cell(bit, f"{scheme} (model=decoder)", 64) for scheme in ("cope", "rope"))


def of_atlas_longer(at):
    """The last token of an offset, by the seeds at the rates that tie."""
    back = "token_k_back(k=3)"
    last = {scheme: at.seeds(back, scheme, "last") for scheme in ("kerple", "alibi(factor=64.0)", "alibi")}
    yield from (median(last["kerple"][16]), median(last["kerple"][64]), median(last["alibi(factor=64.0)"][64]))
    yield from (at.half(back, "kerple"), median(last["alibi"][16]), at.half(back, "alibi"))


def of_atlas_recall(at):
    """Who holds it how far, who fades, and who does not learn it, run by run, since runs of one row differ."""
    cells, trained = (of["recall"] for of in _by_probe(at))
    task, scaled = "mqar(symbols=64, power=1.0)", "ssmax + rope"
    assert (len(trained), *_held(trained, 1, 2, 4)) == (46, 39, 36, 30)
    assert sum(cell.four >= 0.98 for cell in trained) == 24
    yield from ("0.9", "0.98")
    faded = ["xpos", "complex_order", "alibi(factor=64.0)", "liere(axes=1)", "vo_rope", "algebraic", "sinusoidal"]
    faded += ["binary", "rope(base=10.0)"]
    assert {cell.row for cell in trained if cell.learned and cell.four < 0.9} == {*faded}
    yield from (cells[row].four for row in ("rope", *faded))
    assert [cell.row for cell in trained if cell.rates_apart >= 0.2] == ["alibi(factor=64.0)"]
    yield from (cells["alibi(factor=64.0)"].rates_apart, "0.2")
    begun, guessing = ("repo", "nope", scaled), ("lstm", "gru", "tupe", "tapa")
    assert _unlearned(trained) == {*begun, *guessing} and 0.89 < cells["repo"].once < 0.9
    yield from (cells["nope"].once, cells[scaled].once, cells["rope"].floor)
    assert all(abs(cells[row].once - cells[row].floor) < 0.005 for row in guessing)
    runs = {row: sorted(at.shares[task, f"{row} (model=decoder)", 32, "token"]) for row in ("nope", scaled)}
    assert [share < 0.3 for share in runs["nope"]] == [True, False, False, False]
    assert runs[scaled][2] == runs[scaled][3]
    yield runs[scaled][2]
    yield from (at.half(task, f"{row} (model=decoder)") for row in (*begun, "tapa"))


def of_atlas_recall_seeds(at):
    """The three that are compared, RoPE's runs that have not learned it, and its models under what stretches them."""
    cells, ahead = _by_probe(at)[0]["recall"], ("path", "selective_rope")
    yield cells["rope"].once
    assert all(cells[row].once > 0.995 for row in ahead)
    yield from (cells[row].four for row in ("rope", *ahead))
    assert all(min(at.ahead(claim)) > 0 for claim in from_file(FOLDER / "atlas_recall_seeds.py").published)
    runs = {row: sorted(at.shares["mqar(symbols=64, power=1.0)", row, 32, "token"]) for row in ("rope", *ahead)}
    assert all(len(shares) == 12 for shares in runs.values()) and all(runs[row][0] > 0.9 for row in ahead)
    assert runs["rope"][1] < 0.26 and runs["rope"][3] > 0.99
    yield from (runs["rope"][2], cells["rope"].floor)
    alike = (("by_parts", "self_extend(group=7)", "yarn"), ("rerope", "llama3(factor=4.0, base=10000.0)"))
    for methods in (*alike, ("ntk", "dynamic_ntk"), ("pi",), ("longrope",)):
        (value,) = {round(cells[f"{method}, trained with rope"].four, 2) for method in methods}
        yield value


EACH = (of_atlas, of_atlas_contrasts, of_atlas_encoders, of_atlas_longer, of_atlas_recall, of_atlas_recall_seeds)
