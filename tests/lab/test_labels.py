"""A label tells runs apart by what was chosen, in its shortest text, and by nothing that follows from it."""

from tests.lab import made


def labels(*settings):
    """What results call runs of one scheme on one task that differ in these settings."""
    every = [
        made.record("nope", "none", "copy", [made.trial(f"nope{n}", "copy", 0, {8: 1.0})], **run)
        for n, run in enumerate(settings)
    ]
    results = made.results("x", tuple({**r, "label": "nope"} for r in every))
    return [results.label(r, r.trials[0]) for r in results.records]


def test_a_model_is_told_by_its_shortest_text_without_what_it_has_no_use_for():
    found = labels(
        {"model": "decoder", "hidden": 256},
        {"model": "lstm(bidirectional=False, forget=1.0)", "hidden": None},
        {"model": "lstm(bidirectional=False, forget=2.0)", "hidden": None},
    )
    assert found == ["nope (model=decoder)", "nope (model=lstm)", "nope (model=lstm(forget=2.0))"]


def test_models_of_two_widths_of_their_feed_forward_layer_are_told_apart():
    found = labels({"model": "decoder", "hidden": 256}, {"model": "decoder", "hidden": 64})
    assert found == ["nope (hidden=256)", "nope (hidden=64)"]


def test_a_model_that_is_not_installed_keeps_what_was_written():
    assert labels({"model": "mamba(state=16)"}, {"model": "rnn(bidirectional=False)"}) == [
        "nope (model=mamba(state=16))",
        "nope (model=rnn)",
    ]


def test_parts_that_only_some_runs_have_are_no_label_but_another_revision_is():
    kinds = [{"attention": a, "revisions": {"NoPE": 1, **part}} for a, part in (("dot", {"Dot": 1}), ("average", {}))]
    assert labels(*kinds) == ["nope (attention=dot)", "nope (attention=average)"]
    revised = [{"revisions": {"NoPE": 1, "model": n}} for n in (1, 2)]
    assert labels(*revised) == ["nope (revision of model=1)", "nope (revision of model=2)"]
