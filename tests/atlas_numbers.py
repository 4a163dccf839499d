"""The numbers that the Results of the atlas quote, read from its records in the order of the text."""

from statistics import median

from posenc.lab.results.atlas_cells import atlas_cells


def of_atlas(at):
    """From the cells, as the figure and the tables have them."""
    back, cells = "token_k_back(k=3)", {cell.row: cell for cell in atlas_cells(at.results) if cell.probe == "offset"}
    trained = [cell for row, cell in cells.items() if ", trained with" not in row]
    absolute, apart = ([c for c in trained if c.family == "absolute"], [c for c in trained if c.rates_apart >= 0.2])
    held = [sum((cell.reach or 0) >= times for cell in trained) for times in (1, 2, 4)]
    assert (len(trained), held, len(absolute), len(apart)) == (46, [39, 25, 20], 6, 4)
    assert {cell.reach for cell in absolute} == {1}
    rope, steep = cells["rope"], cells["alibi(factor=64.0)"]
    yield from ("0.9", rope.twice, rope.four, cells["rope(base=10.0)"].four)
    yield from (cells["by_parts, trained with rope"].four, cells["ntk, trained with rope"].four)
    yield from (max(cell.twice for cell in absolute), rope.floor, cells["fire"].once, cells["fire"].twice)
    assert f"{steep.four:.2f}" == "1.00"
    yield from (steep.once, *(cells[row].trained for row in ("alibi", "kerple", "grape_ap")))
    yield from (at.half(back, f"{row} (model=decoder)") for row in ("alibi", "kerple", "grape_ap"))
    yield max(cell.rates_apart for cell in apart)


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
    for task, first in ((copy, "nope"), (reverse, "rope @ random_sorted(limit=128)")):
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
