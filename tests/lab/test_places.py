"""Places for checkpoints that outlive a machine: folders, and an object store (one that fsspec keeps in a folder)."""

import json

import fsspec
import numpy as np
import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from posenc.lab.run.sweep import plan_experiment
from posenc.lab.run.worker import waiting
from posenc.lab.store import checkpoints, places
from posenc.lab.store import folder as store
from tests.lab.inline import Inline, driven
from tests.lab.interrupted import ABOUT, ROWS, TOKEN
from tests.lab.test_ray_driver import as_json, left
from tests.lab.test_sweep import Watch, experiment

SIGN, GROUP, URL = "f" * 16, "g" * 32, "s3://bucket/ckpts"


class Bucket(DirFileSystem):
    """An object store in a folder. One for all tests, since `epath` keeps the first."""

    protocol, cachable = "s3", False
    home, broken = None, False

    def __init__(self, **_):
        super().__init__("/", LocalFileSystem(auto_mkdir=True))

    def _join(self, path):
        return [*map(self._join, path)] if isinstance(path, list) else f"{self.home}/{path.removeprefix('s3://')}"

    def _relpath(self, path):
        if isinstance(path, list):
            return [*map(self._relpath, path)]
        return path.removeprefix(f"{self.home}/")

    def open(self, path, mode="rb", **how):
        if self.broken and "w" in mode:
            raise PermissionError("AccessDenied")
        return super().open(path, mode, **how)


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    fsspec.register_implementation("s3", Bucket, clobber=True)
    monkeypatch.setattr(Bucket, "home", tmp_path / "store")
    monkeypatch.setattr(Bucket, "broken", False)
    Bucket.home.mkdir()
    return Bucket


def test_a_place_is_the_run_folder_or_its_name_below_what_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "mine"
    assert places.place_of(None, run) == str(run)
    assert places.place_of("shared", run) == str(tmp_path / "shared" / "mine")
    assert places.place_of("gs://bucket/a/", run) == "gs://bucket/a/mine"


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_a_machine_sees_a_place_by_the_sign_that_the_driver_left(tmp_path, bucket, kind):
    place = str(tmp_path / "x") if kind == "folder" else f"{URL}/x"
    places.offer(place, SIGN)
    assert places.unseen(place, SIGN) == "" and places.groups(place) == []
    assert "is not seen by every node" in places.unseen(place, "e" * 16)
    places.withdraw(place, SIGN)
    assert "is not seen by every node" in places.unseen(place, SIGN)


def test_a_place_that_cannot_be_used_is_one_sentence(tmp_path, bucket):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^--checkpoints '.*' cannot be used: .*\.$"):
        places.offer(str(tmp_path / "file"), SIGN)
    bucket.broken = True
    with pytest.raises(ValueError, match=r"^--checkpoints 's3://bucket/ckpts/x' cannot be used: AccessDenied\.$"):
        places.offer(f"{URL}/x", SIGN)


def saved(near, step=40, token=TOKEN):
    about = checkpoints.Manifest(**{**vars(ABOUT), "step": step})
    return checkpoints.save(near, GROUP, token, about, ROWS)


def test_an_object_store_holds_what_the_machine_does_and_gives_it_to_the_next(bucket):
    with places.home(URL, GROUP) as (near, changed):
        first = saved(near)
        changed()
        saved(near, 60)
        checkpoints.note_failure(first)
        changed()
    assert places.groups(URL) == [GROUP]
    with places.home(URL, GROUP) as (near, changed):
        found = checkpoints.paths(near, GROUP)
        assert [checkpoints.step_of(path) for path in found] == [40, 60]
        assert [checkpoints.manifest(path).step for path in found] == [40, 60]
        assert np.array_equal(checkpoints.rows(found[1]), ROWS)
        assert checkpoints.note_failure(found[0]), "the second time"
        changed()
    with places.home(URL, GROUP) as (near, _):
        assert [checkpoints.step_of(path) for path in checkpoints.paths(near, GROUP)] == [60]
        assert not near.joinpath("ckpt", GROUP, f"40.{TOKEN}.failed").exists()
    places.drop(URL, GROUP)
    assert places.groups(URL) == []
    places.drop(URL, GROUP)


def test_what_is_cut_short_in_a_store_is_left_out_and_what_is_damaged_is_named(bucket):
    with places.home(URL, GROUP) as (near, changed):
        for step in (40, 60, 80):
            saved(near, step)
        changed()
    at = bucket.home / "bucket/ckpts/ckpt" / GROUP
    (at / f"80.{TOKEN}" / "manifest.json").unlink()
    damaged = next(path for path in (at / f"60.{TOKEN}" / "state").rglob("*") if path.is_file())
    damaged.write_bytes(b"x")
    with places.home(URL, GROUP) as (near, _):
        found = checkpoints.paths(near, GROUP)
        assert [checkpoints.step_of(path) for path in found] == [40, 60]
        with pytest.raises(ValueError, match="checksum"):
            checkpoints.manifest(found[1])


@pytest.mark.parametrize("name", ["../../../escaped", "/escaped", "a/../../escaped"])
def test_no_name_in_a_manifest_of_a_store_leaves_its_folder(bucket, tmp_path, name):
    at = bucket.home / "bucket/ckpts/ckpt" / GROUP / f"40.{TOKEN}"
    at.mkdir(parents=True)
    (at / "manifest.json").write_text(json.dumps({"files": {name: "0"}}))
    (bucket.home / "bucket/ckpts/escaped").write_text("1")
    with places.home(URL, GROUP) as (near, _):
        assert [path.name for path in near.rglob("*") if path.is_file()] == ["manifest.json"]
        with pytest.raises(ValueError, match="manifest.json"):
            checkpoints.manifest(checkpoints.paths(near, GROUP)[0])


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "far"
    plan_experiment(experiment(), folder)
    return folder


def test_groups_go_on_from_checkpoints_in_a_store_and_leave_none_there(bucket, run, whole):
    watch, cluster = Watch(), Inline()
    cluster.act = lambda parcel, number: cluster.cut(parcel) if number == 0 else None
    assert driven(run, cluster, watch, place=f"{URL}/far") == 0
    assert "goes on from step 2." in "\n".join(watch.notes())
    assert as_json(run) == as_json(whole) and left(run) == [] == places.groups(f"{URL}/far")
    assert not [path for path in bucket.home.rglob("*") if path.is_file()]


def test_a_store_that_refuses_a_checkpoint_is_reported_once_and_training_goes_on(bucket, run):
    def breaks(parcel, number):
        bucket.broken = True

    watch = Watch()
    groups = waiting(run, store.read_plan(run), store.survey(run).outcomes, False)
    assert driven(run, Inline(breaks), watch, place=f"{URL}/far", every=1e-9) == 0
    said = [line for line in watch.notes() if "no checkpoint at step" in line]
    assert len(said) == len(groups) and all("refused: AccessDenied; training goes on" in line for line in said)
