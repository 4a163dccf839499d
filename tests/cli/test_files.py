"""Commands replace nothing but what posenc wrote, and make no folder that was not named as one."""

import pytest

from tests.lab import made

PRECIOUS = "precious\n"
WRITERS = [
    ("export mine --bundle {}", ["a.html", "a.json", "a.txt"]),
    ("evaluate mine --bundle {}", ["a.json"]),
    ("evaluate mine --by size --csv {}", ["a.csv"]),
    ("evaluate mine --by size --png {}", ["a.png", "a.svg"]),
    ("export mine -o {}", ["a.csv", "a.json", "a.parquet"]),
    ("export mine --what curves -o {}", ["a.csv", "a.json"]),
    ("report mine -o {}", ["a.html"]),
    ("explain attention --html {}", ["a.html"]),
    ("explain rope --png {}", ["a.png", "a.svg", "a.pdf"]),
    ("explain aliases --png {}", ["a.svg"]),
    ("sweep --grid scheme=rope task=copy --save {} --dry-run", ["a.toml"]),
]
CASES = [(words, name) for words, names in WRITERS for name in names]


@pytest.mark.parametrize(("words", "name"), CASES)
def test_a_file_of_the_users_is_never_replaced(refuse, runs, tmp_path, words, name):
    (tmp_path / name).write_text(PRECIOUS)
    assert name in refuse(*words.format(name).split())
    assert (tmp_path / name).read_text() == PRECIOUS


@pytest.mark.ci
@pytest.mark.parametrize(("words", "name"), CASES)
def test_a_missing_folder_is_not_made(refuse, runs, words, name):
    refuse(*words.format(f"missing/{name}").split())


@pytest.mark.ci
@pytest.mark.parametrize(
    "words",
    [
        "export mine --bundle a.json",
        "export mine -o a.csv",
        "export mine -o a.json",
        "export mine --what curves -o a.csv",
        "report mine -o a.html",
        "explain attention --html a.html",
        "explain aliases --png a.svg",
        "explain aliases --png a.png",
        "explain aliases --png a.pdf",
    ],
)
def test_what_posenc_wrote_is_written_again(posenc, runs, words):
    assert posenc(*words.split()).code == posenc(*words.split()).code == 0


def test_a_bundle_of_another_run_is_not_replaced(posenc, refuse, runs, tmp_path):
    made.filled("other", [made.rope()])
    assert posenc("export", "other", "--bundle", "b.json").code == 0
    before = (tmp_path / "b.json").read_bytes()
    assert "is a bundle of 'other'" in refuse("export", "mine", "--bundle", "b.json")
    assert (tmp_path / "b.json").read_bytes() == before


@pytest.mark.ci
def test_a_figure_goes_to_a_folder(posenc, refuse, runs):
    assert "give a folder" in refuse("plot", "mine", "-o", "x.svg")
    assert "FOLDER" in posenc("plot", "--help").out
    assert posenc("plot", "mine", "--figure", "length", "-o", "drawn").code == 0
