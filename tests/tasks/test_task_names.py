"""A text names a task and a task names itself; whatever is wrong is one sentence before anything is traced."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.task import TASKS, Layout, Sizes, Task
from tests import refused


def test_a_task_and_its_text_are_one(text):
    task = tasks.parse(text)
    assert tasks.spec(task) == text
    assert tasks.parse(tasks.spec(task)) == task


def test_settings_take_the_type_of_their_field():
    assert tasks.parse("flip_flop(1)") == tasks.parse("flip_flop(p=1.0)")
    assert tasks.spec(tasks.parse("token_k_back(1, 16)")) == "token_k_back"
    assert tasks.parse("token_k_back(k=3)") != tasks.parse("pointer_back(reach=3)")


SETTINGS = """
token_k_back: k=0; k=True; k=2.5
sum_mod: modulus=1; modulus=16777217
shifted: size=2147483648; task='shifted'
copy: variant='thrice'
odds_first: order='odd'
flip_flop: p=1.5
fill_blank: hide=0.0; window=2
addition: other=0; other='some'; format='cho'
addition_multi: numbers=11; numbers=1
addition_kazemnejad: shortest=0
multiply_nxm: m=0
bitwise_or: other=0
minesweeper: other=4
sort_labels: labels=0
sort_multi: largest=1000000000; smallest=-1
lego: letters=1
needle: needles=3, per_key=2; needles=4, per_key=2, queries=3; queries=2; needles=20
associative_recall: noise=1.0; fuzzy=True, repeat=True
word_problem: group='S4'
copies: start=0.4, end=0.1; start=0.0; end=1.5
hidden_markov: states=1; stay=1.2
"""


@pytest.mark.parametrize(("task", "given"), refused.rows(SETTINGS))
def test_settings_without_a_meaning_are_refused(task, given):
    refused.check_refused(tasks.parse, task, given)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("token_k_bak", "'token_k_back'"),
        ("token_k_back(kk=3)", "k, symbols"),
        ("reverse_string(k=3)", "setting of token_k_back"),
        ("token_k_back(1, 2, 3)", "3 settings"),
        ("copy(variant='repeat', distinct=True)", "distinct=True"),
        ("addition(hints=1)", "not 1"),
        ("addition(hints=-1)", "not -1"),
        ("addition(hints=9, other=9)", "at least 10"),
        ("sort_multi(smallest=12, largest=12)", "'smallest'"),
        ("mqar(symbols=8)", "10 symbols"),
        ("mqar(as_released=True)", "random_non_queries=True"),
        ("shifted(task='copies')", "'copies'"),
        ("shifted(task='s2s_copy')", "'s2s_copy'"),
        ("shifted(task='copyy')", "'copy'"),
        ("shifted(task='token_k_back(k=40)')", "size 32"),
        ("shifted(task='copy + copy')", "one task"),
        ("shifted(size=-1)", "size -1"),
        ("copy + copy", "one task"),
        ("[copy]", "one task"),
        ("copy @ index", "one task"),
        ("", "names nothing"),
        ("__import__('os')", "'__import__'"),
    ],
)
def test_a_wrong_text_is_refused_in_one_sentence(wrong, says):
    with pytest.raises(ValueError) as caught:
        tasks.parse(wrong)
    assert says in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("task", "given", "error", "says"),
    [
        ("token_at_index(indices=8)", dict(n=7, n_max=16), ValueError, "take 8 to"),
        ("token_at_index(indices=8)", dict(n=9, n_max=7), ValueError, "size 7"),
        ("token_k_back(k=3)", dict(n=3, n_max=8), ValueError, "take 4 to 8"),
        ("token_k_back(k=3)", dict(n=9, n_max=8), ValueError, "size 9"),
        ("associative_recall(keys=8)", dict(n=4, n_max=9), ValueError, "take 1 to 8"),
        ("reverse_string", dict(n=0, n_max=8), ValueError, "size 0"),
        ("reverse_string", dict(n=jnp.array([4, -1]), n_max=8), ValueError, "size -1"),
        ("reverse_string", dict(n=jnp.ones(3, jnp.int32), n_max=8), ValueError, "not (3,)"),
        ("reverse_string", dict(n=4.0, n_max=8), TypeError, "whole number"),
        ("reverse_string", dict(n=4, n_max=8.0), TypeError, "whole number"),
        ("reverse_string", dict(n=True, n_max=8), TypeError, "whole number"),
        ("reverse_string", dict(n=4, n_max=8, batch=0), ValueError, "rows"),
    ],
)
def test_a_wrong_size_is_refused_in_one_sentence(task, given, error, says):
    with pytest.raises(error) as caught:
        tasks.parse(task).sample(jax.random.key(0), **({"batch": 2} | given))
    assert says in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("task", "length", "why"),
    [
        ("token_k_back(k=3)", (3,), "is 3"),
        ("associative_recall(keys=8)", (9,), "9; .*4 to 8"),
        ("before", (7,), "is 7.* 8"),
        ("before", (1, 1), "is 1.* 2"),
        ("date_format", (201,), "201.* 200"),
        ("dyck", (41,), "41.* 2"),
    ],
)
def test_a_length_that_cannot_be_trained_on_is_refused(task, length, why):
    with pytest.raises(ValueError, match=why):
        tasks.parse(task).sizes.upto(*length)


@pytest.mark.parametrize(
    ("task", "size", "legal"),
    [
        ("dyck", 41, "at least 2, in steps of 2"),
        ("dyck(full=True, depth=3)", 4, "at least 6, in steps of 2"),
        ("flip_flop", 65, "at least 4, in steps of 2"),
        ("mqar", 65, "at least 16, in steps of 2"),
        ("copy(hints=4)", 5, "1 to 4"),
        ("copy(distinct=True, symbols=10)", 11, "1 to 10"),
        ("shifted(task='dyck', size=8)", -1, "at least 0"),
        ("addition(hints=9)", 9, "1 to 8"),
        ("sort_labels(labels=4)", 5, "1 to 4"),
        ("count_up(symbols=12)", 13, "1 to 12"),
    ],
)
def test_a_size_that_a_task_has_not_is_refused_and_never_made_another(task, size, legal):
    with pytest.raises(ValueError, match=f"size {size}.*{legal}"):
        tasks.parse(task).check_size(size)


@pytest.mark.parametrize("only", [Sizes(5, (5, 5), (), 5), Sizes(5, (5, 5), (), 6, step=2)])
def test_a_task_of_one_size_says_so(only):
    with pytest.raises(ValueError, match="6.* 5"):
        only.upto(6)


def test_suites_hold_tasks_that_parse():
    assert {"quick", "chomsky", "probes"} <= set(tasks.suites())
    for suite in tasks.suites():
        assert all(tasks.spec(tasks.parse(text)) == text for text in tasks.suite(suite))
    quick = {"token_at_index", "token_k_back", "copy", "flip_flop", "associative_recall"}
    assert set(tasks.suite("quick")) == quick
    with pytest.raises(ValueError, match="'quick'"):
        tasks.suite("quik")


def test_a_task_is_final_and_its_name_is_its_own():
    with pytest.raises(TypeError, match="final"):
        type("Longer", (TASKS.find("copy"),), {}, name="longer")
    with pytest.raises(ValueError, match="'copy' is taken"):
        type("Other", (Task,), {"layout": Layout.LM, "alphabet": 2, "sizes": None}, name="copy")
    with pytest.raises(TypeError, match="alphabet and"):
        type("Other", (Task,), {"layout": Layout.LM}, name=None)
    assert tasks.names() == sorted(set(tasks.names()))


def test_a_text_must_say_how_long_it_is():
    parts = {"alphabet": 2, "sizes": Sizes(1, (1, 2), (4,)), "make": None, "answer": None}
    with pytest.raises(TypeError, match=r"Other.*tokens\(n\)"):
        type("Other", (Task,), parts | {"layout": Layout.LM}, name=None)()
    assert type("Other", (Task,), parts | {"layout": Layout.TAG}, name=None)().tokens(3) == 6


def test_no_setting_has_the_name_of_a_method():
    """It would stand in the method's place: a setting `data` once did."""
    methods = {method for method in dir(Task) if callable(getattr(Task, method))}
    for name in TASKS.names():
        assert not methods & {field.name for field in dataclasses.fields(TASKS.find(name))}, name
