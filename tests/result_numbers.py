"""The numbers that the Result of each experiment quotes, read from its record in the order of the text.

`tests/test_experiment_numbers.py` compares them. They are medians of the seeds unless the text says otherwise.
"""

import math
from statistics import median

from posenc.lab import metrics
from posenc.lab.results import losses
from posenc.lab.results.evidence import Evidence
from posenc.lab.spec.experiment_file import executed, from_file
from tests import atlas_numbers, language_numbers
from tests.hits import FOLDER


def of_extension(at):
    """At places beyond training: under RoPE, under others without further training, and after it."""
    back = "token_k_back(k=3)"

    def untuned(scheme, size=256):
        return at(back, f"{scheme}, trained with rope", size, metric="beyond")

    def tuned(scheme, size):
        return at(back, f"rope, then {scheme}, length=128", size, metric="beyond")

    yield at(back, "rope", 16, min, "token")
    yield from (at(back, "rope", 256, metric="beyond"), untuned("ntk(factor=16.0)"), untuned("dynamic_ntk"))
    yield from (untuned("by_parts(factor=16.0)"), untuned("rerope(window=8)"))
    yield untuned("self_extend(group=31, window=8)")
    yield from (untuned("yarn(factor=16.0)"), untuned("llama3(factor=16.0, high_freq_factor=2.0, base=10000.0)"))
    yield from (untuned("log_n + rope"), untuned("pi(factor=2.0)", 32), untuned("longrope(factor=2.0)", 32))
    poor = {"pi(factor=8.0)", "longrope(factor=8.0)"}
    every = {s.removeprefix("rope, then ").removesuffix(", length=128") for s in at.schemes(back, ", length=128")}
    assert len(every) == 11
    yield min(tuned(scheme, 128) for scheme in every)
    methods = ("pi(factor=8.0)", "rope", "ntk(factor=8.0)", "by_parts(factor=8.0)")
    steps = [Evidence(at.results).sure(back, f"rope, then {scheme}, length=128") for scheme in methods]
    assert [median(of.values()) for of in steps] == [285, 20, 15, 20]
    yield from (tuned(scheme, 256) for scheme in sorted(poor, reverse=True))
    yield min(tuned(scheme, 256) for scheme in every - poor)
    yield from (at.half(back, f"rope, then {scheme}, length=128") for scheme in sorted(poor, reverse=True))


def of_ruoss_small(at):
    row, distances = "missing_duplicate_string", "resample='layer', over='distances'"
    alibi, xl, drawn = "alibi(form='half')", "transformer_xl", f"random_sorted(limit=512, {distances}"
    longest = at.medians(row, at.schemes(row), 16)
    assert len(longest) == 12 and len(at.halves) == 8 and max(at.halves.values()) == at.halves[row, xl]
    yield from (min(longest), max(longest), at.half(row, xl))
    for size in (8, 16):
        yield from (at(row, "sinusoidal", size), at(row, alibi, size), at(row, xl, size))
    described, released = (f"transformer_xl(form='scored') @ {drawn}{end}" for end in (")", ", version='as_released')"))
    with_alibi, with_xl = (f"{alibi} @ {drawn})", alibi), (described, released, xl)
    yield from (at(row, scheme, size) for scheme in with_alibi for size in (24, 32))
    yield from (at.half(row, alibi), at.half(row, with_alibi[0]))
    yield from (at(row, scheme, size) for scheme in with_xl for size in (24, 32))
    yield from (at.half(row, described), at.half(row, released))
    orders = [
        one for one in from_file(FOLDER / "ruoss_small.py").published if hasattr(one, "first") and one.task == row
    ]
    assert [one.first for one in orders if min(at.ahead(one)) > 0] == [f"{alibi} @ {drawn})"] and len(orders) == 5
    yield max(at.medians(row, at.schemes(row), 200))
    yield "1.00"


def of_first_look(at):
    back, index = "token_k_back(k=3)", "index_of_token(indices=8)"
    yield from (at(back, scheme, size) for size in (16, 20) for scheme in ("learned", "sinusoidal"))
    yield from (at(back, scheme, 64, metric="token") for scheme in ("learned", "rope", "t5"))
    yield from (at(back, "t5", 20), at(back, "t5", 64), at(back, "rope", 20), at(back, "rope", 64))
    yield from (at(back, "nope", 16), at(back, "alibi", 16), at(index, "sinusoidal", 64), at(index, "learned", 64))
    yield max(at.medians(index, at.schemes(index) - {"sinusoidal", "learned"}, 64))
    assert len(at.shares[back, "rope", 16, "last"]) == 10
    yield from (at(index, "rope", 16), at(index, "rope", 20))
    assert set(at.halves) == {(index, "alibi")}
    yield from (at.half(index, "alibi"), at(index, "alibi", 16))


def of_sites(at):
    back, pointer, index = "token_k_back(k=3)", "pointer_back(reach=4)", "index_of_token(indices=8)"
    values, sandwich = "vo_rope(queries_and_keys=False)", "sandwich(dim=16)"
    yield from (at(back, "rope", 32), at(back, "vo_rope", 32), at(back, values, 16), at(back, values, 32))
    yield at(back, values, 32, metric="token")
    yield from (at(back, "sinusoidal", 16), at(back, "sinusoidal", 20), at(back, sandwich, 16))
    yield from (at.half(back, sandwich), at(back, "nope", 16))
    yield from (at(pointer, "rope", 16), at(pointer, "vo_rope", 16))
    yield max(at.medians(pointer, at.schemes(pointer) - {"rope", "vo_rope"}, 16))
    yield from (at(pointer, "rope", 32), at(index, "sinusoidal", 32), at(index, "nope", 32), at(index, "rope", 32))


def of_state(at):
    a5, z60, lstm, rnn = (
        "word_problem",
        "word_problem(group='Z60')",
        "nope (depth=1, model=lstm)",
        "nope (depth=1, model=rnn)",
    )
    one, two, four = (f"rope (depth={n}, model=decoder)" for n in (1, 2, 4))
    yield from (at(a5, lstm, 4), at(a5, lstm, 8), at(a5, lstm, 8, min), at(a5, lstm, 8, max), at.half(a5, lstm))
    yield from (at(a5, lstm, 32), at(a5, one, 8), at(a5, two, 8), at(a5, four, 8), at(a5, four, 4))
    yield from (at(a5, four, 4, max), at.half(a5, four), at(a5, two, 4), at(a5, two, 2))
    yield from (at(z60, one, 8), at(z60, two, 8), at(z60, one, 16), at(z60, two, 16), at(z60, lstm, 16))
    yield from (at(a5, rnn, 4), at(z60, rnn, 4), *(f"{100 * at.ending(task, rnn).fall:.0f}" for task in (a5, z60)))
    yield from (at(a5, "path (depth=2, model=decoder)", 4), at(a5, four, 8, metric="token"))


def of_flipflop(at):
    alibi, rope, learned, waves, cope = (
        f"{scheme} (model=decoder)" for scheme in ("alibi", "rope", "learned", "sinusoidal", "cope")
    )
    task, lstm = "flip_flop", "nope (model=lstm)"
    sizes = {size for _, scheme, size, _ in at.shares if scheme == lstm}
    assert max(sizes) == 256
    least = min(at(task, lstm, size, min, metric) for size in sizes for metric in ("last", "token"))
    assert least == 1, "no error"
    nope = "nope (model=decoder)"
    placed = at.medians(task, at.schemes(task) - {nope, lstm}, 64)
    assert len(placed) == 5 and min(placed) > 0.995
    yield from (least, min(placed), at(task, learned, 64, min), at(task, cope, 64, min), at(task, nope, 64))
    assert set(at.halves) == {(task, nope)}
    assert max(at.ending(task, scheme).loss for scheme in at.schemes(task) - {nope}) < losses.LEARNED
    yield at.half(task, nope)
    yield from (at(task, alibi, 256), at(task, rope, 128), at(task, rope, 256), at(task, rope, 256, metric="token"))
    yield from (at(task, cope, 128), at(task, cope, 256), at(task, cope, 128, min), at(task, cope, 128, max))
    yield from (at(task, learned, 128), at(task, waves, 128))
    shares = at.shares[task, cope, 64, "last"]
    assert sum(share == 1 for share in shares) == 4 and len(shares) == 6
    yield f"{100 * (1 - min(shares)):.0f}"


def of_permutation(at):
    back, encoder, decoder = "token_k_back", " (model=encoder)", " (model=decoder)"
    yield at("before", f"nope{encoder}", 16)
    yield min(at.medians("before", at.schemes("before") - {f"nope{encoder}"}, 16))
    symmetric = [f"{scheme}{encoder}" for scheme in ("alibi", "kerple", "sandwich")]
    blind, sure = at.medians(back, symmetric, 16, "token"), at.medians(back, symmetric, 16)
    yield from (min(blind), max(blind), executed(FOLDER / "permutation.py").either(16), min(sure), max(sure))
    yield from (at.half(back, scheme) for scheme in symmetric)
    half = f"alibi(form='half'){encoder}"
    yield from (at(back, half, 16, metric="token"), at.half(back, half))
    yield min(at.medians(back, at.schemes(back, decoder) - {f"nope{decoder}"}, 16))
    yield from (at(back, f"nope{decoder}", size) for size in (8, 16, 32))
    yield from (at(back, f"nope{decoder}", 16, metric="token"), at.half(back, f"nope{decoder}"))
    yield at(back, f"nope{encoder}", 16)


def of_averaging(at):
    count, back = "count_symbol", "token_k_back(k=3)"
    recall = "associative_recall(keys=8, values=8, repeat=True)"
    average, additive, dot, divided = (
        f"sinusoidal (attention={kind})" for kind in ("average", "additive", "dot", "scaled_dot")
    )
    for task, size in ((back, 16), (recall, 8)):
        yield from (at(task, kind, size) for kind in (additive, dot, divided))
    yield from (at(back, average, 16), at(recall, average, 8), at(back, average, 16, metric="token"))
    yield from (f"{100 * at.ending(task, average).fall:.0f}" for task in (back, recall))
    yield from (at(count, kind, 16) for kind in (average, additive, divided, dot))
    rates = {trial.knobs.lr for record in at.results.tuning for trial in record.trials}
    assert at(count, dot, 16, max) < 0.5 and len(at.shares[count, dot, 16, "last"]) == 6 and len(rates) == 3
    assert {lr for task, scheme, lr in at.curves if (task, scheme) == (count, dot)} == {min(rates)}
    assert set(at.halves) == {(count, average), (count, additive)}, "both count"
    yield f"{100 * at.ending(count, dot).fall:.0f}"
    yield max(at.medians(back, at.schemes(back), 20))


def of_addition(at):
    coupled, abacus = "learned @ given(shift=56, each='example')", "abacus @ given(which='digit', shift=56)"
    adds = plain, reverse, marked = ("addition", "addition(format='abacus')", "addition(format='zhou2024')")
    drawn = "fire @ random_sorted(limit=512)"
    assert at(plain, coupled, 10, min, "exact") > 0.99
    assert max(at(plain, s, 6, max, "exact") for s in ("nope", "rope")) < 0.02
    assert sum(share == 0 for share in at.shares[plain, coupled, 12, "exact"]) == 2
    learned = [(reverse, abacus, 10, 4), (marked, "fire", 6, 4), (marked, drawn, 6, 1)]
    assert all(sum(v >= 0.9 for v in at.shares[t, s, n, "exact"]) == seeds for t, s, n, seeds in learned)
    yield from (at(plain, coupled, size, metric="exact") for size in (12, 15))
    yield from (at(reverse, abacus, size, metric="exact") for size in (10, 12, 15))
    yield max(share for task in adds for share in at.medians(task, at.schemes(task), 20, "exact"))
    yield from (at(marked, fire, 10, metric="exact") for fire in ("fire", drawn))
    assert max(at(marked, fire, 15, metric="exact") for fire in ("fire", drawn)) < 0.005
    yield from (at.half(*where) for where in ((marked, "fire"), (marked, drawn), (reverse, abacus), (plain, "rope")))
    assert (plain, "nope") not in at.halves
    yield f"{100 * at.ending(plain, 'nope').fall:.0f}"


def of_copying(at):
    copy, reverse, adds = "copy(symbols=20)", "reverse(symbols=20)", "addition_kazemnejad(shortest=1)"
    yield min(value for task in (copy, reverse) for value in at.medians(task, at.schemes(task), 10, "exact"))
    sums = at.medians(adds, at.schemes(adds), 4, "exact")
    yield from (min(sums), max(sums))
    falls = sorted(int(at.half(adds, scheme)) for scheme in at.schemes(adds))
    yield from (f"{falls[0]}", f"{falls[-1]}")
    assert {task for task, _ in at.halves} == {adds}
    yield from (at(task, scheme, 13, metric="exact") for task in (copy, reverse) for scheme in ("alibi", "nope"))
    for task, best in ((copy, "alibi"), (reverse, "t5")):
        assert at(task, best, 15, metric="exact") == max(at.medians(task, at.schemes(task), 15, "exact"))
        yield at(task, best, 15, metric="exact")
        assert max(at.medians(task, at.schemes(task), 20, "exact")) == 0
    rotary = sorted(at.shares[reverse, "rope(fraction=0.25)", 13, "exact"])
    yield from (median(rotary), *rotary[-2:])


def of_counting(at):
    task = "counting_cope(passes=8)"
    every, others = at.schemes(task), at.schemes(task) - {"learned"}
    longest, beyond = at.medians(task, every, 16, "exact"), at.medians(task, others, 24, "exact")
    yield from (min(at.medians(task, every, 4, "exact")), min(longest), max(longest))
    yield at(task, "cope", 16, metric="exact")
    falls = sorted(at.half(task, scheme) for scheme in every)
    yield from (falls[0], falls[-1])
    ours = from_file(FOLDER / "counting.py").published
    assert [sum(value > 0 for value in at.ahead(order)) for order in ours] == [1, 6, 0, 3]
    yield from (
        at(task, "learned", 24, metric="exact"),
        min(beyond),
        max(beyond),
        at(task, "alibi", 32, metric="exact"),
    )
    floor = at.results.tasks()[task].floors[48]["prior"]
    assert all(min(at.shares[task, scheme, 48, "exact"]) < floor for scheme in every)
    yield floor


def of_gates(at):
    task, lstm, gru = "token_k_back(k=16)", "nope (model=lstm)", "nope (model=gru)"
    plain = [
        at(task, f"nope (model={network})", size, min)
        for network in ("rnn", "rnn(start='normal')")
        for size in (28, 32, 64)
    ]
    assert len({*plain}) == 1
    yield plain[0]
    for network in (lstm, gru):
        yield from (at(task, network, 32, metric="token"), at(task, network, 32))
    yield from (at(task, network, 64) for network in (lstm, gru))
    yield at.results.tasks()[task].floors_last[64]["prior"]
    yield from (at.half(task, network) for network in (lstm, gru))


def of_memory(at):
    task = {k: "token_k_back" if k == 1 else f"token_k_back(k={k})" for k in (1, 2, 4, 8, 16, 24)}
    rope, rnn, lstm, gru = "rope (model=decoder)", *(f"nope (model={name})" for name in ("rnn", "lstm", "gru"))
    normal, blind = "nope (model=rnn(start='normal'))", "nope (model=decoder)"
    yield min(at(each, rope, 32) for each in task.values())
    for k in (8, 16):
        assert max(at(task[k], gated, 32, max) for gated in (lstm, gru)) < at(task[k], rnn, 32, min)
    yield from (at(task[8], network, 32) for network in (rnn, gru, lstm))
    yield from (at(task[16], network, 32) for network in (rnn, normal, gru, lstm))
    yield from (at(task[24], network, 32) for network in (rnn, normal, lstm, gru))
    yield from (at.half(task[k], network) for k in (8, 16) for network in (gru, lstm))
    yield from (at.half(task[24], network) for network in (rnn, normal, lstm))
    assert abs(at.ending(task[24], gru).fall) < 0.001
    yield from (at(task[24], rnn, 28), at(task[24], rnn, 32), at.mean(task[24], rnn))
    yield from (at(task[k], blind, 32) for k in (1, 2))
    yield from (at.half(task[k], blind) for k in (1, 2))


def of_norms(at):
    """At rates of their own: a label holds no rate, so that the trials are read here."""
    shares = {}
    for record in at.results.records:
        for trial in record.trials:
            key = record.run["depth"], record.run["norm"], trial.knobs.lr
            shares.setdefault(key, []).append(metrics.share(trial.evaluations[16], "token"))
    assert len(shares) == 24 and {len(of) for of in shares.values()} == {6}
    solved = {key: min(of) > 0.95 for key, of in shares.items()}

    def largest(depth, norm):
        rates = [rate for d, n, rate in shares if (d, n) == (depth, norm)]
        rate = max(rate for rate in rates if solved[depth, norm, rate])
        assert all(solved[depth, norm, r] for r in rates if r <= rate)
        return f"{rate:g}"

    yield largest(8, "pre")
    yield min(min(of) for (depth, norm, rate), of in shares.items() if (depth, norm) == (8, "pre") and rate <= 0.03)
    yield largest(8, "post")
    yield "0.01"
    yield max(max(of) for (depth, norm, rate), of in shares.items() if (depth, norm) == (8, "post") and rate >= 0.01)
    yield 1 / 16
    yield from (largest(2, "pre"), largest(2, "post"), "0.03")
    failures = [share for share in shares[2, "post", 0.03] if share < 0.95]
    assert len(failures) == 2
    yield from failures
    yield from ("0.1", max(share for (_, _, rate), of in shares.items() if rate == 0.1 for share in of))
    yield from ("0.1", max(shares[2, "post", 0.1]))


def of_recall(at):
    keys, blanks = "mqar(symbols=64, pairs=8)", "selective_copy(data=4, symbols=8)"
    gru, lstm = "nope (model=gru)", "nope (model=lstm)"
    rope, learned, nope = (f"{scheme} (model=decoder)" for scheme in ("rope", "learned", "nope"))
    yield from (at(keys, rope, 128, metric="token"), at(keys, rope, 128))
    yield from (max(at(keys, network, 64, metric="token") for network in (gru, lstm)), "0.125")
    yield from (at.ending(keys, network).loss for network in (gru, lstm))
    yield from {f"{100 * at.ending(keys, network).fall:.0f}" for network in (gru, lstm)}
    yield from (at(blanks, network, 128, metric="exact") for network in (gru, lstm))
    yield from (at(blanks, scheme, size, metric="exact") for size in (64, 128) for scheme in (rope, learned))
    yield from (at(blanks, nope, 64, metric="exact"), at.half(blanks, nope))


def of_base(at):
    """As tables print them; the least share of any run within the trained lengths."""
    backs, models = [f"token_k_back(k={k})" for k in (3, 5)], ("encoder", "decoder")

    def of(base, size, model, back):
        scheme = "rope" if base == 10000.0 else f"rope(base={base})"
        return at.cell(back, f"{scheme} (model={model})", size)

    yield from (of(base, 256, model, back) for base in (10.0, 10000.0) for model in models for back in backs)
    yield max(of(100000.0, 256, model, back) for model in models for back in backs)
    yield math.floor(100 * min(of(10.0, 64, model, back) for model in models for back in backs)) / 100
    yield from (of(10000.0, 64, "encoder", back) for back in backs)
    for rate in (1e-3, 3e-3):
        yield from (at.cell(backs[0], "rope(base=16.0) (model=decoder)", 256, rate), f"{rate:g}")
    yield math.floor(100 * min(min(s) for (*_, n, m), s in at.shares.items() if n <= 16 and m == "token")) / 100
    ahead = [one for one in from_file(FOLDER / "base.py").published if one.over == (256,)]
    assert len(ahead) == 4 and all(min(at.ahead(claim)) > 0 for claim in ahead)


def of_base_content(at):
    """As tables print them; of recall the share of all values."""
    recall, pointer = "mqar(symbols=64, power=1.0)", "pointer_back(reach=4)"
    bases = ["rope(base=10.0)", "rope(base=16.0)", "rope(base=100.0)", "rope(base=1000.0)", "rope"]
    metrics = {recall: "accuracy", pointer: None}
    values = {(task, base): at.seeds(task, base, metric) for task, metric in metrics.items() for base in bases}
    yield math.floor(100 * min(median(values[recall, base][32]) for base in bases)) / 100
    yield from (median(values[recall, base][size]) for size in (64, 256) for base in bases)
    small, large, largest = (values[recall, base] for base in (bases[0], bases[3], bases[4]))
    assert all(a > b for a, b in zip(large[64], small[64], strict=True))
    (seed,) = (n for n, (a, b) in enumerate(zip(largest[64], small[64], strict=True)) if a <= b)
    yield largest[32][seed]
    assert {scheme for _, scheme in at.halves} == {*bases[:2]}
    yield from (at.half(recall, base) for base in bases[:2])
    yield min(median(values[pointer, base][16]) for base in bases)
    yield from (median(values[pointer, base][64]) for base in bases)
    yield from (min(values[pointer, bases[0]][64]), max(values[pointer, bases[0]][64]))


def of_sensitivity(at):
    """As tables print them, and by how much losses still fell over the last half."""
    back, slopes = "token_k_back(k=3)", [f"alibi(form='half', factor={n}.0)" for n in (4, 16, 64)]
    yield at.cell(back, "alibi(form='half')", 16)
    yield from (at.cell(back, scheme, size) for size in (16, 64) for scheme in slopes)
    yield min(at.cell(back, scheme, 16) for scheme in at.schemes(back) if scheme.startswith("t5"))
    reaches = [f"t5(buckets=16, reach={n})" for n in (16, 32, 64)]
    yield from (at.cell(back, scheme, 64) for scheme in (reaches[0], "t5(buckets=16)", *reaches[1:]))
    drawn = [scheme for scheme in at.schemes(back) if "random" in scheme]
    yield from (end(at.cell(back, scheme, 16) for scheme in drawn) for end in (min, max))
    assert {scheme for _, scheme in at.halves} == {*slopes, *drawn} and len(drawn) == 5
    for schemes in (slopes, drawn):
        yield from (end((at.half(back, scheme) for scheme in schemes), key=int) for end in (min, max))


BY_LAST = (
    of_averaging,
    of_first_look,
    of_flipflop,
    of_gates,
    of_memory,
    of_permutation,
    of_ruoss_small,
    of_sites,
    of_state,
)
OTHERS = (
    of_addition,
    *atlas_numbers.EACH,
    of_base,
    of_base_content,
    of_copying,
    of_counting,
    of_extension,
    *language_numbers.EACH,
    of_norms,
    of_recall,
    of_sensitivity,
)
