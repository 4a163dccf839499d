"""Checkpoints on disk: what is saved comes back to the bit, and every damage is named."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from posenc.lab.run import saving
from posenc.lab.store import checkpoints
from tests.lab.interrupted import ABOUT, ROWS, TOKEN, found, kept, notes, resumed, steps, stopped
from tests.lab.test_sweep import trials


def test_a_state_of_any_types_is_packed_and_unpacked_to_the_bit():
    draw = np.random.default_rng(0).integers
    state = {
        "float": draw(0, 2**32, (4, 3, 2), dtype=np.uint32).view(np.float32),  # NaNs of all kinds among them
        "half": jnp.asarray(draw(0, 9, (4, 5)), jnp.bfloat16),
        "count": np.arange(4, dtype=np.int32),
        "none": np.zeros((4, 0, 2), np.float32),
        "flag": np.array([True, False, True, True]),
    }
    rows = saving.pack(state, 3)
    assert rows.shape == (3, 24 + 10 + 4 + 0 + 1) == (3, saving.row_size(state))
    template = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, state))
    found = saving.unpack(rows[[2, 0, 0]], template)
    for name, array in state.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == np.asarray(array)[[2, 0, 0]].tobytes()


@pytest.fixture
def saved(tmp_path):
    return checkpoints.save(tmp_path, "g", TOKEN, ABOUT, ROWS)


def test_what_is_saved_comes_back_bit_for_bit_and_executes_nothing(tmp_path, saved, monkeypatch):
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *_, **__: pytest.fail("unpickled"))
    assert checkpoints.manifest(saved) == ABOUT and found(tmp_path, "g") == [saved]
    np.testing.assert_array_equal(checkpoints.rows(saved), ROWS)


TREE = {
    "layer": [np.arange(6, dtype=np.float32).reshape(3, 2).T, jnp.asarray([1.5, jnp.nan], jnp.bfloat16)],
    "scale": np.array(2.5, np.float32),
    "none": np.zeros((0, 3), np.int8),
}


def keep_parameters(folder):
    return checkpoints.save_parameters(folder, "t", TREE)


def keep_checkpoint(folder):
    return checkpoints.save(folder, "g", TOKEN, ABOUT, ROWS)


def restored(folder):
    return checkpoints.restore(folder, "t")


def test_parameters_come_back_bit_for_bit_under_texts(tmp_path):
    keep_parameters(tmp_path)
    assert checkpoints.kept(tmp_path) == ["t"]
    back = restored(tmp_path)
    assert back.keys() == TREE.keys() and [*back["layer"]] == ["0", "1"]
    for array, expected in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
        assert (array.dtype, array.shape, array.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    with pytest.raises(ValueError, match="train with --keep"):
        checkpoints.restore(tmp_path, "f" * 64)


def flip(path, at=-1):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


HURT = {
    **{f"flip at {at}": lambda path, at=at: flip(path, at) for at in (0, 20, 90, 300, -1)},
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "empty": lambda path: path.write_bytes(b""),
    "pickled": lambda path: path.write_bytes(pickle.dumps({"step": 40})),
    "a link": lambda path: path.symlink_to(path.rename(path.with_name("moved"))),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "under another name": lambda path: path.write_bytes(
        checkpoints.save(path.parent, "g", TOKEN, dataclasses.replace(ABOUT, step=80), ROWS).read_bytes()
    ),
}


@pytest.mark.parametrize("hurt", HURT)
def test_each_damage_is_named(tmp_path, saved, hurt):
    HURT[hurt](saved)
    with pytest.raises(ValueError, match="^it is|^it does not match its checksum|^its manifest is of step 80"):
        checkpoints.manifest(saved)
    path = keep_parameters(tmp_path)
    HURT[hurt](path)
    with pytest.raises(ValueError, match="trial t .*--keep|is a link"):
        restored(tmp_path)


@pytest.mark.parametrize("keep", [keep_parameters, keep_checkpoint])
def test_a_write_that_ends_early_leaves_nothing_and_takes_nothing_away(tmp_path, monkeypatch, keep):
    def interrupted(*_):
        raise KeyboardInterrupt

    target = keep(tmp_path / "x")
    before = target.read_bytes()
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path / "y")
    assert [path for path in (tmp_path / "y").rglob("*") if not path.is_dir()] == []
    with contextlib.suppress(KeyboardInterrupt):
        keep(tmp_path / "x")
    assert target.read_bytes() == before


def written_by_0_2(place):
    """Write parameters as version 0.2.0 did."""
    place.mkdir(parents=True)
    with ocp.PyTreeCheckpointer() as writer:
        writer.save((place / "state").resolve(), {"layer": {"0": np.arange(6.0)}})
    files = [path for path in place.rglob("*") if path.is_file()]
    body = {"files": {str(p.relative_to(place)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}}
    sealed = body | {"sha256": checkpoints.checksum(checkpoints.canonical(body))}
    (place / "manifest.json").write_text(json.dumps(sealed))


def test_parameters_of_0_2_are_read_and_their_damage_is_named(tmp_path):
    place = tmp_path / "params" / "t"
    written_by_0_2(place)
    assert checkpoints.kept(tmp_path) == ["t"] and np.array_equal(restored(tmp_path)["layer"]["0"], np.arange(6.0))
    files = [path for path in place.rglob("*") if path.is_file() and path.stat().st_size]
    assert len(files) >= 8
    for path, damage in itertools.product(files, (flip, Path.unlink)):
        content = path.read_bytes()
        damage(path)
        with pytest.raises(ValueError, match="trial t .*--keep"):
            restored(tmp_path)
        path.write_bytes(content)
    for text in ("", "{", "[1]", "5", "{}", "[" * 9999):
        (place / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match="trial t .*--keep"):
            restored(tmp_path)
    keep_parameters(tmp_path / "again")
    assert [*restored(tmp_path / "again")] == [*TREE]


@pytest.mark.parametrize("damaged", [1, 2])
def test_the_older_checkpoint_or_step_0_is_taken_instead_of_a_damaged_one(uninterrupted, tmp_path, at_once, damaged):
    stopped(tmp_path / "x", 6, every=1e-9)
    assert kept(tmp_path / "x") == [4, 6]
    for path in found(tmp_path / "x")[-damaged:]:
        flip(path)
    again = resumed(tmp_path / "x")
    assert [note.split(" is left out: it does not")[0] for note in notes(again)[:damaged]] == [
        f"the checkpoint at step {step}" for step in (6, 4)[:damaged]
    ]
    assert notes(again)[damaged:] == ["goes on from step 4." if damaged == 1 else "begins again at step 0."]
    assert steps(again)[0] == (6 if damaged == 1 else 2) and trials(tmp_path / "x") == uninterrupted()


def test_a_damaged_checkpoint_is_the_first_to_be_removed(tmp_path, at_once):
    stopped(tmp_path / "x", 6, every=1e-9)
    flip(found(tmp_path / "x")[-1])
    stopped(tmp_path / "x", 6)
    assert [checkpoints.manifest(path).step for path in found(tmp_path / "x")] == [4, 6]


def test_what_a_kill_left_half_written_is_removed_and_what_0_2_saved_is_left_out(tmp_path, at_once):
    stopped(tmp_path / "x", 6)
    (path,) = found(tmp_path / "x")
    half, older = path.with_name(f".8.{TOKEN}.tmp"), path.with_name(f"8.{TOKEN}")
    half.write_bytes(b"x")
    (older / "state").mkdir(parents=True)
    said = notes(stopped(tmp_path / "x", 10, every=1e-9))
    assert said[:2] == [
        "the checkpoint at step 8 is left out: it is a folder, as version 0.2.0 wrote them.",
        "goes on from step 6.",
    ]
    assert not half.exists() and not older.exists()


def test_checkpoints_of_a_recorded_group_are_removed_by_the_next_sweep(tmp_path, monkeypatch):
    """As a kill between the record and the removal leaves them."""
    stopped(tmp_path / "x", 6)
    with monkeypatch.context() as patch:
        patch.setattr(saving.Saver, "drop", lambda self: None)
        resumed(tmp_path / "x")
    assert kept(tmp_path / "x") == [6]
    assert resumed(tmp_path / "x").labels() == [] and kept(tmp_path / "x") == []
