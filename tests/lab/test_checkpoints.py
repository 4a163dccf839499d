"""Checkpoints on disk: what is saved comes back to the bit, and every damage is named."""

import dataclasses
import itertools
import os
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
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
    assert rows.shape == (3, 24 + 10 + 4 + 0 + 1) == (3, saving.row_size(state, 3))
    template = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, state))
    found = saving.unpack(rows[[2, 0, 0]], template)
    for name, array in state.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == np.asarray(array)[[2, 0, 0]].tobytes()


def test_a_large_state_is_saved_in_pieces(tmp_path):
    """Orbax cuts by a divisor: a prime number of bytes would be as many pieces."""
    assert checkpoints.width(2**25, 2) == 2**25 and checkpoints.width(2**25 + 1, 2) == 2**25 + 2**20
    rows = np.zeros((2, checkpoints.width(2**25 + 1, 2)), np.uint8)
    rows[:, :: 2**20] = 7
    path = checkpoints.save(tmp_path, "g", TOKEN, ABOUT, rows)
    assert np.array_equal(checkpoints.rows(path), rows)
    assert len([p for p in path.rglob("*") if p.is_file()]) < 20


@pytest.fixture
def saved(tmp_path):
    return checkpoints.save(tmp_path, "g", TOKEN, ABOUT, ROWS)


def test_what_is_saved_comes_back_bit_for_bit_and_executes_nothing(tmp_path, saved, monkeypatch):
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *_, **__: pytest.fail("unpickled"))
    assert checkpoints.manifest(saved) == ABOUT and found(tmp_path, "g") == [saved]
    np.testing.assert_array_equal(checkpoints.rows(saved), ROWS)
    assert str(tmp_path).encode() not in b"".join(p.read_bytes() for p in saved.rglob("*") if p.is_file())


def flip(path):
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


HURT = {
    "flip": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "delete": lambda path: path.unlink(),
}


@pytest.mark.parametrize("hurt", HURT)
def test_each_damaged_file_is_named(saved, hurt):
    every = sorted(path for path in saved.rglob("*") if path.is_file() and path.stat().st_size)
    assert len(every) >= 8
    for path in every:
        content = path.read_bytes()
        HURT[hurt](path)
        with pytest.raises(ValueError, match=path.name):
            checkpoints.manifest(saved)
        path.write_bytes(content)
    checkpoints.manifest(saved)


def test_parameters_come_back_and_their_damage_is_named(tmp_path):
    tree = {"layer": {"0": np.arange(6, dtype=np.float32).reshape(2, 3)}, "scale": np.array(2.5, np.float32)}
    path = checkpoints.save_parameters(tmp_path, "t", tree)
    assert checkpoints.kept(tmp_path) == ["t"]
    assert jax.tree.all(jax.tree.map(np.array_equal, checkpoints.restore(tmp_path, "t"), tree))
    files = [place for place in path.rglob("*") if place.is_file() and place.name != checkpoints.MANIFEST]
    for hurt, damage in itertools.product((place for place in files if place.stat().st_size), (flip, Path.unlink)):
        content = hurt.read_bytes()
        damage(hurt)
        with pytest.raises(ValueError, match=f"trial t .*{hurt.name}.*--keep"):
            checkpoints.restore(tmp_path, "t")
        hurt.write_bytes(content)
    with pytest.raises(ValueError, match="train with --keep"):
        checkpoints.restore(tmp_path, "f" * 64)
    again = checkpoints.save_parameters(tmp_path, "t", tree)
    assert checkpoints.verify(again) and sorted(p.name for p in again.iterdir()) == [checkpoints.MANIFEST, "state"]


def keep_parameters(folder):
    return checkpoints.save_parameters(folder, "t", {"w": np.ones((2, 3), np.float32)})


def keep_checkpoint(folder):
    return checkpoints.save(folder, "g", TOKEN, ABOUT, ROWS)


@pytest.mark.parametrize("keep", [keep_parameters, keep_checkpoint])
@pytest.mark.parametrize("moment", ["write", "sync"])
def test_a_write_that_ends_early_leaves_nothing_and_takes_nothing_away(tmp_path, monkeypatch, keep, moment):
    """It ends before the manifest, and between the manifest and the rename."""

    def interrupted(*_):
        raise KeyboardInterrupt

    target = keep(tmp_path / "x")
    monkeypatch.setattr(checkpoints.disk, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path / "y")
    assert [path for path in (tmp_path / "y").rglob("*") if not path.is_dir()] == []
    if keep is keep_parameters:
        with pytest.raises(KeyboardInterrupt):
            keep(tmp_path / "x")
    checkpoints.verify(target)


@pytest.mark.parametrize("keep", [keep_parameters, keep_checkpoint])
def test_what_is_put_in_place_is_synced_before_and_after(tmp_path, monkeypatch, keep):
    """A manifest that is not on disk, or a folder that is in place before its files are, would be a damaged one."""
    order, fsync, sync, rename = [], os.fsync, checkpoints.disk.sync, Path.rename
    monkeypatch.setattr(os, "fsync", lambda file: (order.append("a file"), fsync(file))[1])
    monkeypatch.setattr(checkpoints.disk, "sync", lambda folder: (order.append(folder), sync(folder))[1])
    monkeypatch.setattr(Path, "rename", lambda path, to: (rename(path, to), order.append((path, to)))[0])
    target = keep(tmp_path)
    fresh = next(step[0] for step in order if isinstance(step, tuple) and step[1] == target)
    assert fresh.name.startswith(".") and fresh.parent == target.parent, "a kill leaves what readers pass over"
    after = order.index((fresh, target))
    assert order[:after][-3:] == ["a file", fresh, "a file"] and order[after + 1 :] == [target.parent, "a file"]


def test_a_file_more_and_a_link_are_named(saved, tmp_path):
    (saved / "state" / "more").write_text("")
    with pytest.raises(ValueError, match="state/more"):
        checkpoints.manifest(saved)
    (saved / "state" / "more").unlink()
    (tmp_path / "outside").write_bytes((saved / "state" / "_METADATA").read_bytes())
    (saved / "state" / "_METADATA").unlink()
    (saved / "state" / "_METADATA").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match="_METADATA"):
        checkpoints.manifest(saved)
    saved.rename(tmp_path / "moved")
    saved.symlink_to(tmp_path / "moved")
    with pytest.raises(ValueError, match="link"):
        checkpoints.manifest(saved)


def test_paths_in_a_manifest_lead_nowhere(saved, tmp_path):
    (tmp_path / "outside").write_text("x")
    files = checkpoints._sums(saved) | {"../../../outside": checkpoints.checksum("x")}
    (saved / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(dataclasses.asdict(ABOUT), files))
    with pytest.raises(ValueError, match="outside"):
        checkpoints.manifest(saved)


@pytest.mark.parametrize(
    "content", [b"[]", b"7", b"{}", b"[" * 10**5, pickle.dumps({"step": 40}), b'{"step": 40}'], ids=range(6)
)
def test_a_manifest_that_is_something_else_is_named(saved, content):
    (saved / checkpoints.MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match="manifest.json"):
        checkpoints.manifest(saved)


def test_an_edited_manifest_is_named(saved):
    place = saved / checkpoints.MANIFEST
    place.write_bytes(place.read_bytes().replace(b'"jax":"1"', b'"jax":"2"'))
    with pytest.raises(ValueError, match="manifest.json does not match its checksum"):
        checkpoints.manifest(saved)


def test_a_checkpoint_under_another_name_is_named(saved):
    with pytest.raises(ValueError, match="step 40"):
        checkpoints.manifest(saved.rename(saved.with_name(f"80.{TOKEN}")))


@pytest.mark.parametrize("damaged", [1, 2])
def test_the_older_checkpoint_or_step_0_is_taken_instead_of_a_damaged_one(uninterrupted, tmp_path, at_once, damaged):
    stopped(tmp_path / "x", 6, every=1e-9)
    assert kept(tmp_path / "x") == [4, 6]
    for path in found(tmp_path / "x")[-damaged:]:
        flip(next(path.glob("state/d/*")))
    again = resumed(tmp_path / "x")
    assert [note.split(" is left out: state/d/")[0] for note in notes(again)[:damaged]] == [
        f"the checkpoint at step {step}" for step in (6, 4)[:damaged]
    ]
    assert notes(again)[damaged:] == ["goes on from step 4." if damaged == 1 else "begins again at step 0."]
    assert steps(again)[0] == (6 if damaged == 1 else 2) and trials(tmp_path / "x") == uninterrupted()


def test_a_damaged_checkpoint_is_the_first_to_be_removed(tmp_path, at_once):
    stopped(tmp_path / "x", 6, every=1e-9)
    flip(next(found(tmp_path / "x")[-1].glob("state/d/*")))
    assert [p.name for p in (tmp_path / "x" / "ckpt").glob("*/.*")] == []
    stopped(tmp_path / "x", 6)
    assert [checkpoints.manifest(path).step for path in found(tmp_path / "x")] == [4, 6]


def test_what_a_kill_left_half_written_is_removed(tmp_path):
    stopped(tmp_path / "x", 6)
    (group,) = checkpoints.groups(tmp_path / "x")
    half = tmp_path / "x" / "ckpt" / group / f".8.{TOKEN}.tmp"
    gone = tmp_path / "x" / "ckpt" / ".gone.tmp"
    for place in (half, gone):
        (place / "state").mkdir(parents=True)
    stopped(tmp_path / "x", 8)
    assert not half.exists() and not gone.exists()


def test_checkpoints_of_a_recorded_group_are_removed_by_the_next_sweep(tmp_path, monkeypatch):
    """As a kill between the record and the removal leaves them."""
    stopped(tmp_path / "x", 6)
    with monkeypatch.context() as patch:
        patch.setattr(saving.Saver, "drop", lambda self: None)
        resumed(tmp_path / "x")
    assert kept(tmp_path / "x") == [6]
    assert resumed(tmp_path / "x").labels() == [] and kept(tmp_path / "x") == []
