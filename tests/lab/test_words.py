"""What figures call lines: what differs among labels, in words where an experiment gives them."""

import pytest

from posenc.lab.results.words import Words
from tests.lab import made


def names(*labels, **given):
    return list(Words(names=given.pop("names", {}), **given).lines(labels).values())


def test_a_model_without_attention_is_called_by_its_name_alone():
    assert names("nope (model=lstm)", "nope (model=rnn)", "nope (model=convolution)", "rope (model=decoder)") == [
        *("LSTM", "RNN", "convolution", "rope"),
    ]


def test_settings_that_do_not_differ_among_models_with_attention_are_left_out():
    labels = ("rope (depth=1, model=decoder)", "rope (depth=2, model=decoder)", "nope (depth=1, model=lstm)")
    assert names(*labels) == ["depth 1", "depth 2", "LSTM"]
    assert names(*labels, "path (depth=2, model=decoder)") == [
        "rope, depth 1",
        "rope, depth 2",
        "LSTM",
        "path, depth 2",
    ]


def test_networks_of_several_depths_say_them():
    assert names("nope (depth=1, model=lstm)", "nope (depth=2, model=lstm)") == ["LSTM, depth 1", "LSTM, depth 2"]


def test_of_one_scheme_the_settings_are_the_name():
    assert names("sinusoidal (attention=average)", "sinusoidal (attention=dot)") == ["average", "dot"]
    assert names("rope (model=encoder)", "rope (model=decoder)", "alibi (model=encoder)") == [
        *("rope, encoder", "rope, decoder", "alibi, encoder"),
    ]
    assert names("rope (depth=2, norm=pre)", "rope (depth=2, norm=post)") == ["norm pre", "norm post"]


def test_words_of_an_experiment_come_first_for_a_label_or_for_its_scheme():
    given = {"nope": "attention, no positions", "nope (model=rnn)": "plain RNN"}
    assert names("nope (model=rnn)", "nope (model=decoder)", "rope (model=decoder)", names=given) == [
        *("plain RNN", "attention, no positions", "rope"),
    ]


def test_lines_that_would_share_a_name_keep_their_labels():
    assert names("rope", "alibi", names={"rope": "same", "alibi": "same"}) == ["rope", "alibi"]


def test_a_setting_whose_value_has_commas_is_one_setting():
    labels = ("nope (depth=2, model=lstm(a=1, b=2))", "nope (depth=3, model=lstm(a=1, b=2))")
    assert names(*labels) == ["LSTM, depth 2", "LSTM, depth 3"]
    assert names(labels[0], "nope (depth=2, model=lstm)") == ["lstm(a=1, b=2)", "lstm"], "networks of other settings"


def test_a_scheme_with_brackets_of_its_own_keeps_them():
    assert names("alibi(form='half')", "alibi") == ["alibi(form='half')", "alibi"]
    assert names("alibi(form='half') (model=encoder)", "alibi (model=encoder)") == ["alibi(form='half')", "alibi"]


def test_titles_and_what_is_counted_are_by_task():
    words = Words(titles={"copy": "Copy a text"}, counted={"copy": "symbols"})
    assert (words.title("copy"), words.title("sort")) == ("Copy a text", "sort")
    assert (words.coded("copy"), words.coded("sort"), words.code("sort")) == ("Copy a text (copy)", "sort", "")
    assert (words.unit("copy"), words.unit("sort"), Words(counted="digits").unit("sort")) == (
        "symbols",
        "size",
        "digits",
    )


@pytest.mark.parametrize("given", [{"titles": "Copy"}, {"names": {"rope": 3}}, {"counted": ["tokens"]}])
def test_words_of_another_kind_are_refused_in_a_sentence(given):
    with pytest.raises(TypeError, match=r"of an experiment is .*; give .*text"):
        Words(**given)


def test_older_answers_at_every_token_are_shown_by_their_last_and_others_by_their_own():
    """A record without hits by place cannot tell what is beyond training; the last token comes nearest."""
    token, exact = made.rope(), made.rope(task="sort")
    exact["task"] = {**exact["task"], "metric": "exact"}
    token["trials"] = [
        {**t, "evaluations": {n: {**c, "last": 7} for n, c in t["evaluations"].items()}} for t in token["trials"]
    ]
    shown = made.results("a", (token, exact)).shown()
    assert {t.label: t.metric for t in shown.tasks().values()} == {"copy": "last", "sort": "exact"}
    assert {row.value for row in shown.rows() if row.task == "copy"} == {0.07}
    by = made.results("a", (token, exact)).shown({"copy": "accuracy"})
    assert by.tasks()["copy"].metric == "token"
    new = {**token, "task": {**token["task"], "read_by": "exact"}}
    assert made.results("a", (new,)).shown().tasks()["copy"].metric == "exact", "newer records say it themselves"
    assert made.results("a", (token, {**new, "label": "alibi", "trials": []})).shown() is not None


def test_a_metric_that_is_not_one_is_refused():
    for metric in ("mean", {"copy": "mean"}):
        with pytest.raises(ValueError, match="No metric is called 'mean'; take one of accuracy, exact, last, beyond"):
            made.results("a", (made.rope(),)).shown(metric)
