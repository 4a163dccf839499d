"""One worker per group; a dead worker's group is taken over, a living one's is not."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from posenc.lab.store import claims
from posenc.lab.store import folder as store


@pytest.fixture
def folder(runs):
    return store.create("a")


def put(folder, **said):
    """Another worker's claim."""
    path = folder / "claims" / "g"
    path.write_text(json.dumps({"host": "far", "where": "far", "pid": 1, "started": "5", "token": "t", **said}))
    return path


def age(path, seconds):
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def succeeds(folder):
    """Whether a claim of the group succeeds, which is given back at once."""
    with claims.claim(folder, "g") as mine:
        return mine is not None


def test_a_group_is_held_once_and_given_back(folder):
    with claims.claim(folder, "g") as mine:
        assert mine is not None and not mine.lost
        assert not succeeds(folder)
        with claims.claim(folder, "other") as other:
            assert other is not None
        (held,) = claims.held(folder)
        assert (held.group, held.pid, held.stale) == ("g", os.getpid(), False)
    assert claims.held(folder) == ()
    assert list((folder / "claims").iterdir()) == []


def test_an_error_gives_the_group_back(folder):
    with pytest.raises(RuntimeError), claims.claim(folder, "g"):
        raise RuntimeError
    assert claims.held(folder) == ()


def test_of_many_that_try_at_once_one_succeeds(folder):
    start, leave, took = threading.Barrier(8), threading.Barrier(8), []

    def work():
        start.wait()
        with claims.claim(folder, "g") as mine:
            took.append(mine is not None)
            leave.wait()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(took) == [False] * 7 + [True]


def test_of_many_that_steal_at_once_one_succeeds(folder):
    for _ in range(20):
        age(put(folder), 100)
        test_of_many_that_try_at_once_one_succeeds(folder)


def test_a_claim_from_elsewhere_is_stolen_after_a_minute_of_silence_only(folder):
    path = put(folder)
    age(path, 50)
    assert not succeeds(folder)
    age(path, 70)
    assert claims.held(folder)[0].stale
    assert succeeds(folder)


def test_a_claim_of_a_process_killed_here_is_stolen_at_once(folder):
    code = (
        "import sys, time; from pathlib import Path; from posenc.lab.store import claims\n"
        "with claims.claim(Path(sys.argv[1]), 'g'):\n    print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"held\n"
    assert not succeeds(folder)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert claims.held(folder)[0].stale, "also while its parent has not collected it"
    child.communicate()
    assert claims.held(folder)[0].stale
    assert succeeds(folder)


def test_a_process_id_used_again_does_not_keep_a_claim_alive(folder):
    put(folder, where=claims._machine(), pid=os.getpid(), started="not when this process started")
    assert claims.held(folder)[0].stale
    put(folder, where=claims._machine(), pid=os.getpid(), started=claims._started(os.getpid()))
    assert not claims.held(folder)[0].stale


def test_an_equal_process_id_on_another_machine_means_nothing(folder):
    put(folder, pid=2**22 + 1)
    assert not claims.held(folder)[0].stale


@pytest.mark.parametrize("content", ["", "{", "[]", "7"])
def test_a_half_written_claim_counts_as_held_until_it_is_old(folder, content):
    path = folder / "claims" / "g"
    path.write_text(content)
    assert not succeeds(folder)
    age(path, 70)
    assert succeeds(folder)


def test_the_heartbeat_keeps_a_claim_young_and_notices_a_theft(folder, monkeypatch):
    monkeypatch.setattr(claims, "BEAT", 0.01)
    with claims.claim(folder, "g") as mine:
        age(mine.path, 1000)
        deadline = time.monotonic() + 5
        while claims.held(folder)[0].age > 500 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert claims.held(folder)[0].age < 500
        put(folder, token="thief")
        while not mine.lost and time.monotonic() < deadline:
            time.sleep(0.01)
        assert mine.lost
    assert claims.held(folder)[0].host == "far", "a stolen claim is the thief's to give back"


def test_after_a_silence_a_claim_is_read_again(folder):
    """As where the process was stopped together with the thread that beats."""
    with claims.claim(folder, "g") as mine:
        put(folder, token="thief")
        assert not mine.taken()
        mine.beaten -= 3 * claims.BEAT
        assert mine.taken()


def test_ages_follow_the_clock_of_the_files_not_ours(folder, monkeypatch):
    put(folder)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert not claims.held(folder)[0].stale


def test_a_claim_that_changed_hands_while_stealing_is_left_alone(folder, monkeypatch):
    path = put(folder)
    age(path, 100)
    look = claims._look

    def late(path, now):
        seen = look(path, now)
        put(folder, token="fresh")
        return seen

    monkeypatch.setattr(claims, "_look", late)
    assert not succeeds(folder)
    assert json.loads(path.read_text())["token"] == "fresh"
    assert [p.name for p in path.parent.iterdir()] == ["g"], "no marker stays behind"


def test_a_marker_whose_maker_died_does_not_block_for_ever(folder):
    age(put(folder), 100)
    marker = folder / "claims" / f".g.{hashlib.sha256(b't').hexdigest()[:12]}.tmp"
    marker.touch()
    assert not succeeds(folder)
    age(marker, 100)
    assert succeeds(folder)


def test_a_group_cannot_leave_the_folder(folder):
    with pytest.raises(ValueError, match="name"), claims.claim(folder, "../g"):
        pass
