"""`posenc compact`: what it lists, does and refuses. tests/lab/test_packs.py looks at the files."""

from posenc.lab.store import compacting
from posenc.lab.store import folder as store
from tests.lab.test_packs import files, filled, pack_of


def test_the_command_lists_packs_and_says_what_it_did(posenc):
    folder = filled("mine")
    contents = files(folder)
    listed = posenc("compact", "mine", "--dry-run")
    assert listed.code == 0 and "8 records would be packed." in listed.out and files(folder) == contents
    assert posenc("compact", "mine").out == "8 records packed into 1 file.\n"
    assert posenc("compact", "mine").out == "0 records packed.\n"
    pack_of(folder)[1].unlink()
    assert posenc("compact", "mine").out == "0 records packed; mended 1 damaged or missing.\n"
    with store.claim(folder, compacting.CLAIM):
        refused = posenc("compact", "mine")
    assert refused.code == 2 and refused.err.endswith("now; wait until it is done.\n")
    (folder / "plan.jsonl").unlink()
    assert posenc("compact", "mine").code == 2
    assert posenc("compact", "nowhere").code == 2
