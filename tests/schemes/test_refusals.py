"""Settings and sizes of schemes without a meaning are refused, with what is in question."""

import numpy as np
import pytest

import posenc
from tests.refused import check_refused, rows
from tests.schemes.helpers import made, tokens

DIMS = posenc.Dims(width=8, heads=4, head=4, trained=16)
SETTINGS = """
alibi: slopes=(); slopes=(1.0, -0.5); slopes=(1.0, 0.5), fraction=0.5
alibi: factor=0.0; factor=-1.0; fraction=0.0; fraction=1.5; form='both'
selective_rope: rank=-1; kernel=-2; kernel=0, activation='silu'; base=1
repo: base=0; mode='quadratic'
dape: hidden=0
dape_v2: hidden=0; kernel=2; kernel=-1; kernel=1, edge='array'
deberta: terms='p2p'; terms='c2p', mirrored=True; reach=0; reach=8, buckets=9; reach=8, buckets=-1
deberta: reach=8, buckets=0; reach=8, buckets=2; reach=8, buckets=5; reach=8, buckets=7
fourier: axes=0; hidden=0; features=7; features=0; gamma=0.0; gamma=-1.0
grape_ap: features=0; features=3; features=-2; features=4, source='key'
inkling: rank=0; extent=0; floor=0; strength=-1.0
fire: hidden=0; eps=0.0; threshold=-1.0
sandwich: dim=7; dim=0; first=2
kerple: kernel='linear'; kernel='none'
log_cpb: axes=0; hidden=0; depth=0; reach=0.0; axes=2, reach=(3.0, 0.0); axes=2, reach=(1.0, 2.0, 3.0)
log_cpb: activation='gelu'
path: rank=0; kernel=0; forget='yes'
rerope: window=0; leak=-0.1; leak=4.0; base=0.0
self_extend: window=-1; group=0; base=1.0
tapa: alpha=0.0; share=0.0; share=1.0
rope: taper=-0.5; taper=1.5; frequencies=(1.0, 0.5), base=500.0; frequencies=(1.0, 0.5), p=0.5; at='middle'
rope: base=0; base=-1; base=1; base=1.0; fraction=0; fraction=1.5; p=0; p=-0.5; p=2
rope_2d: base=0.0; base=-1.0; base=1.0
mrope: fraction=0.0; fraction=1.5
rope_axes: widths=(4,); widths=(4, 3); widths=(4, 0); base=1.0; widths=(2, 2), base=(10.0, 20.0, 30.0)
mrope: base=0.0; base=-1.0; base=1.0; sections=(0, 0, 0); sections=(-1, 5, 4)
dynamic_ntk: factor=0.5; original=0; rule='linear', factor=2.0; rule='cubic'; base=0.0
longrope: factor=0.0; original=1; switch='never', short=(1.0, 2.0); switch='gradual', factor=1.0; start=-1
longrope: magnitude=0.0
pi: factor=0.5; factor=-2.0; base=1.0; fraction=0.0
ntk: factor=0.5; factor=-2.0; base=1.0; fraction=0.0
by_parts: factor=0.5; factor=-2.0; base=1.0; fraction=0.0; original=0; ntk_factor=-0.5; keep=(2.0, 16.0)
by_parts: blend=(1.0, 0.0)
yarn: factor=0.5; factor=-2.0; base=1.0; fraction=0.0; original=0; beta_fast=1.0, beta_slow=2.0
yarn: attention_factor=0.0; attention_factor='linear'; attention_factor=1.2, mscale=0.5; mscale=-1.0
yarn: extrapolation_factor=1.5
llama3: factor=0.5; factor=-2.0; base=1.0; fraction=0.0; original=0; low_freq_factor=4.0
hope: base=1.0; fraction=0.0; trained=0
sinusoidal_2d: layout='sines_first'; order='swapped'; base=100.0; form='axes', base=1.0
log_n: offset=0.0; offset=2.5; offset=3.0, trained=4
scale_invariant: tau=0.0; tau=-1.0
key_offset: fraction=0.0; fraction=1.5; at='middle'
canon: k=0; k=-1
entmax: alpha=1.0; alpha=2.5; alpha=0.5
asentmax: delta=-1.0; spread=0.0; kind='both'
relative_2d: height=0; width=-1
sinusoidal: base=0; base=-10; base=1
t5: buckets=7; buckets=0; buckets=2, bidirectional=True; buckets=6, bidirectional=True; buckets=32, reach=16
t5: buckets=32, reach=8, bidirectional=True
binary: bits=0; bits=-1; bits=32
llama4: floor=0; offset=-1
transformer_xl: base=1.0
tupe: buckets=6; buckets=-4; buckets=8, reach=2
fope: length=0; gain=-1.0; base=0.0; base=-1.0; base=1.0
complex_order: words=-1
music_transformer: reach=0
carope: base=0.5; first=2
convit: axes=0; locality=-1.0
grape_a: gate='value'
grape_m: omega_scale=0.0; base=0.0; base=-1.0; base=1.0
cope: npos=0
abacus: rows=1
vo_rope: fraction=0.0; fraction=1.5; at='middle'; base=0.0; base=-1.0; base=1.0
vo_rope: factor=0.5; factor=2.0; original=8; factor=2.0, original=-1; factor=2.0, original=8, base=0.5
pope: base=0.0; base=-1.0; base=1.0
complex_order: base=0.0; base=-1.0; base=1.0
shaw: reach=-1
xpos: gamma=0; scale_base=0; scale_base=-512; base=1
"""
"""Of each scheme, settings of which the refusal names one with its value."""

TEXTS = [
    ("selective_rope(spectrum='rfa')", "0.9"),
    ("selective_rope(spectrum='rfa', base=0.0)", "0.9"),
    ("rerope(window=3) + rope", "last"),
    ("self_extend(group=2, window=4) + rope", "last"),
    ("alibi + tapa", "'tapa'.*first"),
    ("rope + tapa", "'tapa'.*first"),
    ("tapa + rope", "'tapa'.*first"),
    ("log_n + tapa", "'tapa'.*first"),
    ("stick_breaking + stick_breaking(remainder=True)", "softmax"),
    ("longrope(long=(1.0, -2.0))", "'long'.*'longrope'.*-2.0"),
    ("longrope(short=(0.0,))", "'short'.*'longrope'.* 0.0"),
    ("log_n(trained=1)", "length, 1"),
    ("log_n(trained=0)", "length, 0"),
    ("tupe(reach=64)", "'tupe'.*buckets=32"),
    ("convit + convit", "softmax"),
    ("tupe + rope", "'tupe'.*'rope'"),
    ("pope + rope", "'pope'.*'rope'"),
    ("tapa + vo_rope", "q or"),
    *[(text, "'path' replaces") for text in ("path + rope", "rope + path", "log_n + path", "alibi + path")],
    *[(text, "'wall' replaces") for text in ("wall + rope", "rope + wall", "log_n + wall", "alibi + wall")],
    *[(f"transformer_xl + {last}", "last") for last in ("rope", "shaw", "transformer_xl", "(rope + alibi) @ index")],
    *[(f"rope + {name}", f"'{name}'.*before") for name in ("log_n", "ssmax", "llama4")],
    ("dual_triangle + rope", "'dual_triangle' gives"),
    ("entmax + stick_breaking", "softmax"),
    ("rope + asentmax", "'asentmax'.*before"),
    ("rope + bam(ssmax=True)", "'bam'.*before"),
    ("rope + (log_n + alibi) @ index", "'log_n'.*before"),
    ("nope + (rope + log_n) @ index", "'log_n'.*before"),
    ("rerope(window=3) + log_n", "before|after"),
    ("self_extend(group=2, window=4) + log_n", "before|after"),
]

SIZES = [
    ("selective_rope", (8, 2, 3, 16), "has 3"),
    ("selective_rope", (9, 2, 4, 16), "2 heads.* 9"),
    ("selective_rope(spectrum='rfa', base=0.5)", (8, 4, 2, 16), "'rfa'.*2 features"),
    ("repo", (8, 1, 7, 16), "has 7"),
    ("rope(fraction=0.3)", (8, 2, 8, 16), "fraction=0.3 .* 8 .*fraction=0.25 or 0.5"),
    ("rope(fraction=0.1)", (8, 2, 8, 16), "fraction=0.1 .* 8 .*fraction=0.25 or 0.5"),
    ("rope(fraction=0.9)", (8, 2, 8, 16), "fraction=0.9 .* 8 .*fraction=0.75 or 1"),
    ("rope_2d", (8, 1, 6, 16), "has 6 .* 4 or 8"),
    ("rope_2d", (8, 1, 2, 16), "has 2 .* 4"),
    ("rope_2d", (8, 1, 9, 16), "has 9 .* 8 or 12"),
    ("mrope(sections=(16, 24, 24), order='chunked')", (16, 1, 16, 16), r"\(16, 24, 24\).* 16 .* 8"),
    ("mrope(sections=(2, 5, 1), order='interleaved')", (16, 1, 16, 16), r"3 of 8 .* 2 .*\(5, 1\)"),
    ("mrope(sections=(3, 2, 3), order='interleaved')", (16, 1, 16, 16), "2 for"),
    ("liere(size=3)", (16, 2, 8, 16), "blocks of 3.*size=2, 4, 8"),
    ("liere(size=1)", (16, 2, 8, 16), "blocks of 1.*size=2, 4, 8"),
    ("liere(size=16)", (16, 2, 8, 16), "blocks of 16.*size=2, 4, 8"),
    ("liere(axes=0)", (16, 2, 8, 16), "'liere'.*axes=0"),
    ("liere(extent=0.0)", (16, 2, 8, 16), "'liere'.*extent=0.0"),
    ("algebraic(branching=1)", (16, 2, 8, 16), "branching=1"),
    ("algebraic(decay=0.0)", (16, 2, 8, 16), "decay=0.0"),
    ("algebraic(decay=1.5)", (16, 2, 8, 16), "decay=1.5"),
    ("algebraic(structure='grid')", (8, 1, 2, 16), "2 features.* 4"),
    ("algebraic(structure='grid')", (8, 1, 7, 16), "7 features.* 6"),
    ("algebraic(structure='grid')", (8, 1, 1, 16), "1 features.* 4"),
    ("log_n", (8, 1, 4, 1), "'log_n'.*length, 1"),
    ("t5(buckets=6)", (4, 1, 4, 8, None, None, False), "buckets=6"),
    *[(f"{name}fraction=0.25)", (8, 1, 8, 16), "at least 4") for name in ("ntk(", "by_parts(")],
    *[(f"dynamic_ntk(rule={rule!r})", (2, 1, 2, 16), "at least 4") for rule in ("ntk", "by_parts")],
    ("fope", (4, 2, 2, 64), "2 features.* 64 tokens"),
    ("fope", (32, 2, 16, 6), "16 features.* 6 tokens"),
    ("ssmax", (8, 1, 4, 1), "'ssmax'.*length, 1"),
    ("bam(ssmax=True)", (8, 1, 4, 1), "'bam'.*length, 1"),
    ("transformer_xl", (5, 1, 5, 8), "even, not 5"),
    ("complex_order", (7, 1, 7, 16), "'complex_order'.* 7 .* 8"),
    ("carope", (8, 1, 5, 16), "has 5"),
    ("carope", (8, 1, 2, 16), "2 features.*first=1"),
    ("sinusoidal_2d", (7, 1, 7, 4), "width.* 7"),
    ("grape_m", (6, 2, 3, 16), "has 3"),
    ("tupe + t5", (6, 4, 4, 16), "q·k"),
    ("rope", (8, 1, 1, 16), "has 1.* 2"),
    ("dual_triangle", (8, 1, 7, 16), "has 7; take 6 or 8"),
    ("key_offset(fraction=0.3)", (8, 1, 8, 16), "fraction=0.3 of 8 features.*fraction=0.25"),
    ("rope(frequencies=(1.0, 0.5))", (8, 1, 8, 16), "2 frequencies.* 8 features.* 4"),
    ("rope(taper=0.1)", (8, 1, 8, 16), "taper=0.1 .*of 4 .*taper=0.25"),
    ("alibi(slopes=(1.0, 0.5))", (8, 4, 2, 16), "2 slopes .* 4 heads"),
    ("mrope(sections=(2, 1, 1), fraction=0.25)", (8, 1, 16, 16), r"\(2, 1, 1\), 4 pairs.* 16 .* 2 .*fraction=0.25"),
    ("rope_axes(widths=(4, 6))", (8, 1, 8, 16), r"\(4, 6\), 10 features.* 8"),
    ("rope_axes", (8, 1, 2, 16), "has 2 .* 4"),
    ("sinusoidal_2d('axes')", (6, 1, 6, 4), "width, 6.* 4 or 8"),
    ("vo_rope(fraction=0.3)", (8, 2, 8, 16), "fraction=0.3 .* 8 .*fraction=0.25 or 0.5"),
]


@pytest.mark.parametrize(("name", "given"), rows(SETTINGS))
def test_settings_without_a_meaning_are_refused(name, given):
    check_refused(posenc.parse, name, given)


@pytest.mark.parametrize(("text", "value"), TEXTS)
def test_what_does_not_fit_together_is_refused(text, value):
    with pytest.raises(ValueError, match=value):
        posenc.parse(text)


@pytest.mark.parametrize(("text", "dims", "value"), SIZES)
def test_sizes_that_do_not_fit_are_refused(text, dims, value):
    with pytest.raises(ValueError, match=value):
        posenc.bind(posenc.parse(text), posenc.Dims(*dims))


PAIRS = "rope pi ntk by_parts yarn llama3 hope rerope self_extend vo_rope xpos grape_ap(source='key')".split()


@pytest.mark.parametrize("text", PAIRS)
def test_an_odd_head_is_refused_bound_or_not(text):
    with pytest.raises(ValueError, match="has 7"):
        posenc.bind(posenc.parse(text), posenc.Dims(7, 1, 7, 16))
    scheme, params = made(text, DIMS)
    with pytest.raises(ValueError, match="has 7"):
        posenc.attend(scheme, params, *[np.ones((3, 4, 7), np.float32)] * 3, x=np.ones((3, 8), np.float32))


FUTURE = """carope cope dape_v2 fire fox grape_a grape_ap grape_m inkling music_transformer path rerope
    scale_invariant selective_rope self_extend stick_breaking t5 wall xpos""".split()
TWO = """canon carope convit cope deberta dynamic_ntk fox grape_ap grape_m inkling longrope path selective_rope
    stick_breaking t5 tupe wall""".split()
BETWEEN = "abacus binary deberta inkling learned music_transformer shaw t5 tupe".split()
FEATURES = ["carope", "cope(gates='own')", "fox", "grape_m", "inkling", "path", "selective_rope", "wall"]
ARGUMENTS = {"bidirectional": {"mask": "full"}, "cross": {"key_x": np.ones((4, 8), np.float32)}}


def call(text, queries=4, x=True, **arguments):
    """The scheme at work, by the hook that it has."""
    scheme, params = made(text, DIMS)
    q, k, v, features = tokens(4, dims=DIMS)
    if scheme.overrides("embed"):
        return posenc.embed(scheme, params, features, **arguments)
    return posenc.attend(scheme, params, q[:queries], k, v, x=features[:queries] if x else None, **arguments)


def test_the_released_edge_has_no_cache():
    scheme, params = made("dape_v2(edge='array')", DIMS)
    with pytest.raises(ValueError, match="'dape_v2' has no cache: its convolution reads where the array of keys ends"):
        posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=4)


@pytest.mark.parametrize("limit", ["bidirectional", "cross"])
def test_a_seen_future_and_two_sequences_are_refused_by_name(limit):
    names, said = (FUTURE, "causal only") if limit == "bidirectional" else (TWO, "two sequences")
    assert [name for name in posenc.names() if limit in posenc.bind(name, DIMS).limits] == names
    for name in names:
        with pytest.raises(ValueError, match=f"'{name}' .*{said}"):
            call(name, 4 if limit == "bidirectional" else 2, **ARGUMENTS[limit])


@pytest.mark.parametrize("name", BETWEEN)
def test_positions_between_whole_numbers_are_refused(name):
    with pytest.raises(TypeError, match=f"'{name}'"):
        call(name, positions=np.arange(4, dtype=np.float32) / 2)


@pytest.mark.parametrize("text", FEATURES)
def test_what_reads_features_is_refused_without_them(text):
    with pytest.raises(ValueError, match="pass x"):
        call(text, x=False)


@pytest.mark.parametrize(
    "text",
    [
        "convit",
        "fourier(axes=2)",
        "liere",
        "log_cpb(axes=2)",
        "mrope",
        "relative_2d",
        "rope_2d",
        "rope_axes",
        "sinusoidal_2d",
    ],
)
def test_positions_of_another_number_of_axes_are_refused(text):
    with pytest.raises(ValueError, match=f"{posenc.parse(text).axes} axes"):
        call(text, positions=np.arange(4))
