"""Arithmetic: how pairs of sizes are drawn, sums and products of any length, and the coordinates of digits."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks import digits, minesweeper
from tests.night import by_day
from tests.tasks.task_checks import agrees_with_its_oracle, drawn, is_well_formed, p_value

ROWS = 20_000


def sizes(n, k, least=1):
    """The law of k sizes of at least so much, uniform and independent, given that the largest is n."""
    found = [c for c in itertools.product(range(least, n + 1), repeat=k) if max(c) == n]
    return dict.fromkeys(found, 1 / len(found))


@pytest.mark.parametrize(("n", "k", "least"), [(1, 2, 1), (5, 2, 1), (7, 2, 5), (3, 4, 1)])
def test_sizes_are_those_of_an_independent_draw_whose_largest_is_n(n, k, least):
    made = digits.counts(jax.random.key(2), jnp.full(ROWS, n, jnp.int32), k, least=least)
    found = list(zip(*(np.asarray(c).tolist() for c in made), strict=True))
    assert p_value(found, sizes(n, k, least)) > 1e-3
    assert n == least or p_value(found, sizes(n, k, least + 1)) < 1e-9 > p_value(found, sizes(n + 1, k, least))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("named", "names", "least"),
    [
        ("addition", "digits_a digits_b", 1),
        ("addition_multi", "digits_a digits_b digits_c", 1),
        ("multiplication_abacus", "digits_a digits_b", 1),
        ("bitwise_or", "bits_a bits_b", 1),
        ("sort_labels", "length digits", 1),
        ("minesweeper(shortest=2)", "width height", 2),
    ],
)
def test_strata_are_the_sizes_drawn(named, names, least):
    strata = drawn(tasks.parse(named), 4, rows=ROWS).strata
    assert list(strata) == sorted(names.split())
    found = list(zip(*(strata[name].tolist() for name in names.split()), strict=True))
    assert p_value(found, sizes(4, len(names.split()), least)) > 1e-3


PAIRS = [
    ("addition(format='{f}', other={o})", ("digits_a", "digits_b")),
    ("addition_multi(other={o})", ("digits_a", "digits_c")),
    ("multiplication_abacus(other={o})", ("digits_a", "digits_b")),
    ("bitwise_or(other={o})", ("bits_a", "bits_b")),
    ("bitwise_or(bits='as_released', other={o})", ("bits_a", "bits_b")),
    ("sort_labels(other={o})", ("length", "digits")),
    ("minesweeper(shortest=1, other={o})", ("width", "height")),
]


@pytest.mark.ci
@pytest.mark.parametrize(("named", "names"), by_day(PAIRS, PAIRS[1:2] + PAIRS[5:6]))
def test_a_grid_of_pairs_can_be_evaluated(named, names):
    """A first size below the second, above it, and as large; the second "same" or a number."""
    for f, o in [("coupling", "3"), ("plain", "3"), ("abacus", "'same'"), ("zhou2024", "4")]:
        task = tasks.parse(named.format(f=f, o=o))
        for n in (2, 5):
            batch = drawn(task, n, rows=20)
            second = n if "same" in o else int(o)
            assert (batch.strata[names[0]] == n).all() and (batch.strata[names[1]] == second).all()
            is_well_formed(task, batch)
            agrees_with_its_oracle(task, batch)
        if "{f}" not in named:
            break


WAYS = list(itertools.product(("plain", "reversed"), ("plain", "reversed"), ("none", "operands", "both"), (30,)))
WAYS += [("plain", "plain", "operands", 0), ("reversed", "plain", "none", 0)]


@pytest.mark.ci
@pytest.mark.parametrize(("operands", "result", "padded", "hints"), by_day(WAYS, WAYS[::3]))
def test_every_way_to_write_a_sum_is_legal(operands, result, padded, hints):
    task = tasks.parse(f"addition(operands={operands!r}, result={result!r}, padded={padded!r}, hints={hints})")
    batch = drawn(task, 12, rows=50, n_max=13)
    agrees_with_its_oracle(task, batch)
    is_well_formed(task, batch)
    assert ("coupled" in batch.coords) == (result == "reversed" or padded == "both")
    for row, tokens in enumerate(batch.tokens):
        numbers = list(_numbers(task, tokens))
        _digits_are_counted_from_the_sign_before(numbers, batch.coords["digit"][row])
        if "coupled" in batch.coords:
            _digits_of_equal_weight_share_a_number(task, numbers, tokens, batch.coords["coupled"][row])


@pytest.mark.ci
@pytest.mark.parametrize("written", ["coupling", "abacus", "zhou2024", "plain"])
def test_no_coordinate_of_a_prompt_tells_whether_the_highest_digits_carry(written):
    batch = drawn(tasks.parse(f"addition(format={written!r}, other='same')"), 3, rows=50)
    told = batch.prompt[0]
    assert (batch.prompt == told).all() and len(set(batch.score.sum(axis=1))) == (1 if written == "coupling" else 2)
    for ids in batch.coords.values():
        assert (ids[:, told] == ids[0, told]).all()


def _numbers(task, tokens):
    """Where the digits of each number stand, with their markers, and where the sign behind it."""
    signs, each, number = {10, task.special("SEP"), task.special("EOS")}, 2 if task.form.hints else 1, []
    for at, token in enumerate(tokens[1:], start=1):
        if token in signs:
            yield [number[n : n + each] for n in range(0, len(number), each)], at
            number = []
        else:
            number.append(at)


def _digits_are_counted_from_the_sign_before(numbers, digit):
    assert len(numbers) == 3 and digit[0] == 0
    for places, _ in numbers:
        assert [digit[place[-1]] for place in places] == list(range(1, len(places) + 1))


def _digits_of_equal_weight_share_a_number(task, numbers, tokens, coupled):
    """By the text alone: the j-th digit of each number from its units has the number 2 + j, and so has its marker."""
    for which, (places, sign) in enumerate(numbers):
        backwards = (task.form.result if which == 2 else task.form.operands) == "reversed"
        weights = enumerate(places if backwards else places[::-1])
        assert all((coupled[place] == 2 + weight).all() for weight, place in weights)
        assert which == 2 or (coupled[sign] == 1) == (which == 0 or task.form.result == "reversed")
    nothing = (tokens == task.special("BOS")) | (tokens == task.special("EOS")) | (tokens == task.special("PAD"))
    assert not coupled[nothing].any()


PLACED = ["multiplication_abacus", "bitwise_or", "sort_labels", "addition_multi", "multiply_nxm"]


@pytest.mark.ci
@pytest.mark.parametrize("named", by_day(PLACED, PLACED[:2]))
def test_a_digit_s_place_is_counted_from_the_sign_before_it(named):
    task = tasks.parse(named)
    kinds = 2 if named == "bitwise_or" else 10
    batch = drawn(task, 6, rows=40, n_max=7)
    for tokens, digit in zip(batch.tokens, batch.coords["digit"], strict=True):
        place, told = 0, []
        for token in tokens:
            place = place + 1 if token < kinds else 0
            told.append(place)
        assert digit.tolist() == told


@pytest.mark.ci
def test_cells_of_a_board_have_their_row_and_column_in_prompt_and_answer():
    for text, ends in (("lines", 1), ("as_released", 0)):
        task = tasks.parse(f"minesweeper(shortest=2, text={text!r})")
        batch = drawn(task, 5, rows=30, n_max=6)
        sizes_ = zip(batch.strata["width"], batch.strata["height"], strict=True)
        for (w, h), row, col in zip(sizes_, batch.coords["row"], batch.coords["col"], strict=True):
            cells = [(2 + r, 2 + c) for r in range(h) for c in range(w)]
            lines = list(cells)
            for r in range(h - 1, 0, -1):
                lines[r * w : r * w] = [(1, 1)] * ends
            told = [(0, 0), *lines, (1, 1), *cells]
            assert list(zip(row, col, strict=True)) == told + [(0, 0)] * (len(row) - len(told))


@pytest.mark.ci
def test_the_released_board_says_its_shape_by_coordinates_alone():
    """The same examples as with line ends; the oracle refuses a board that is no square."""
    lines, released = (drawn(tasks.parse(f"minesweeper(text='{t}')"), 6, rows=50) for t in ("lines", "as_released"))
    for a, b, w, h in zip(lines.tokens, released.tokens, lines.strata["width"], lines.strata["height"], strict=True):
        assert [t for t in a[1 : w * h + h] if t != minesweeper.LINE] == b[1 : w * h + 1].tolist()
    shapes = {
        (w * h, w) for w, h in zip(released.strata["width"].tolist(), released.strata["height"].tolist(), strict=True)
    }
    assert {(30, 5), (30, 6)} <= shapes
    task = tasks.parse("minesweeper(text='as_released')")
    with pytest.raises(ValueError, match="wide"):
        task.answer([13, *[10] * 30, 12])


@pytest.mark.ci
def test_numbers_have_no_zero_in_front_and_may_be_zero_only_when_asked():
    count = jnp.repeat(jnp.array([1, 2, 3], jnp.int32), ROWS // 2)
    for zero in (True, False):
        made = np.asarray(digits.number(jax.random.key(0), count, 4, zero=zero)).reshape(3, -1, 4)
        law = dict.fromkeys(range(0 if zero else 1, 10), 1 / (10 if zero else 9))
        assert p_value(made[0, :, 0].tolist(), law) > 1e-3 and not made[0, :, 1:].any()
        assert p_value((made[1] @ [1, 10, 100, 1000]).tolist(), dict.fromkeys(range(10, 100), 1 / 90)) > 1e-3
        assert (made[2][:, 2] > 0).all() and not made[2][:, 3].any()
