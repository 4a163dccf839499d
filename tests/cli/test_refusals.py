"""Every bad command line is answered by one sentence on stderr and exit 2, and nothing is written."""

import shlex
import subprocess
import sys

import pytest

from posenc import names

MORE = len(names()) - 5

NAMED = """
'rope' <- run --scheme ropee | describe ropee | new task rope | new scheme rope | check ropee
'reverse_string' <- run --task revers_string | describe revers_string
'--steps' <- run --step 3
'sweep' <- swep
'scheme' <- sweep --grid sceme=rope
'width' <- sweep --grid scheme=rope --set widht=3
'schemes' <- list schems
'length' <- plot x --figure lenght
'base' <- run --scheme 'alibi(base=3.0)'
longest <- run --scheme learned --length 5 --longest 5 --sizes 9
--steps 10 --scheme 'rope(base=3)' <- run --set steps=10 'scheme=rope(base=3)'
--steps 10 <- run --set=steps=10
--model decoder <- run --direction causal
--set steps=10 <- sweep --steps 10
--grid scheme=rope <- sweep --scheme=rope
model=decoder <- sweep --grid scheme=rope --set direction=causal | sweep --grid causal=True
'even_pairs' <- cite even_pair
'symbol' <- describe 'copy(symbol=3)'
size 3 <- describe token_at_index --size 3
--size <- describe rope --size 3 | describe suite:quick --size 3 | describe ruoss --size 32
--width <- describe copy --width 32 | describe preset mqar --width 3 | describe lstm --width 32
'quick' <- describe suite:quik
'' <- describe suite:
'suite:quick' <- describe suite:quick --width 32
'no_such.py' <- describe no_such.py
'copy' <- describe 'copy + reverse' | new task copy | check copyy
'decoder' <- describe decodr
'ruoss' <- describe rouss
'mqar' <- describe preset:mqa | describe preset mqa
'ruoss(width=3)' <- describe 'ruoss(width=3)'
'bidirectionl' <- describe 'lstm(bidirectionl=True)'
'lstm' <- cite lstm
'counting' <- cite countin
experiment <- cite counting
257 <- describe copies --windows 257
--windows <- describe copy --windows 4
--form <- explain attention --form cross --scheme t5 | explain attention --form additive --scheme path
--form <- explain attention --form additive --scheme 'rope + learned'
--len <- explain attention --len 8
--seed <- explain rope --seed 0
--causal <- explain all --causal | explain rope --causal --trained x
`posenc explain` <- explain --len 8
`posenc explain all` <- explain all
--workers <- SWEEP --engine slurm --workers 2 | SWEEP --workers 0 | SWEEP --workers two
--workers <- SWEEP --engine ray --workers 2
--slurm.workers <- SWEEP --slurm.workers 2 | SWEEP --slurm.workers x --engine slurm
--ray.cpus <- SWEEP --ray.cpus 2 | SWEEP --ray.cpus 0 --engine ray
--ray.gpus <- SWEEP --ray.gpus 1 --engine slurm
--slurm.time <- SWEEP --slurm.time 1 --engine ray
--checkpoints <- SWEEP --checkpoints x
'pbs' <- SWEEP --engine pbs
`posenc sweep` <- SWEEP --slurm.nodes 2
'model' <- new model mine
'Mine' <- new scheme Mine
'../mine' <- new scheme ../mine
'class' <- new scheme class
json.py <- new scheme json
numpy.py <- new scheme numpy
'nowhere' <- check nowhere:Mine
'suite' <- new task suite
':Mine' <- check :Mine
'pathlib:Path' <- check pathlib:Path
'preset' <- new scheme preset
G99 <- check rope --only G99
G7 <- check copy --only G7
"""
"""What the sentence names, and commands that are answered so."""
BARE = """
run <- --scheme 'rope(bass=3)' | --scheme 'rope(base=0)' | --scheme 'rope(base=-1.0)' | --scheme 'rope(base=1)'
run <- --scheme "__import__('os').system('x')" | --scheme 'rope(' | --scheme ''
run <- --scheme "rope(base='x')" | --scheme 'rope(fraction=2.0)' | --scheme rope --width 6 --heads 2
run <- --scheme 'rope + window(0)' | --scheme 'window(4)' | --scheme 'rope + window(4) + window(5)'
run <- --scheme '[rope, nope]' --depth 3 | --scheme '[learned, nope]' | --scheme fox --model encoder
run <- --scheme 't5(buckets=3)' | --scheme 'rope @ random_sortd(64)' | --scheme 'rope @ random_sorted(0)'
run <- --task 'token_k_back(k=0)' | --task 'copy + copy' | --steps -5 | --steps many | --steps 2.5 | --steps True
run <- --seeds 0 | --seeds '' | --seeds 3,3 | --seeds 4294967296,1 | --seeds 5:2 | --seeds 99999999999
run <- --width 30 --heads 4 | --heads 0 | --heads -1 | --heads 2.5 | --length 0 | --length 40 --longest 20
run <- --length 4 --shortest 9 | --lr -1 | --lr nan | --lr 1e-3,0.001 | --sizes 0 | --rows 0 | --clip 0 | --warmup 2
run <- --steps 10 --segment 3 | --model encodr | --dtype float64 | --lanes sideways | --name ../x | --name /x
run <- --bogus 1 | --steps 3 --steps 4 | --steps | rope
sweep <- no_such_file.py | no_such_file.toml | | a.py --grid scheme=rope
sweep <- --grid scheme=rope,ropee task=reverse_string --seeds 1 --name x | --grid scheme= task=reverse_string --name x
sweep <- --grid scheme=rope,,alibi | --grid scheme=rope,rope | --grid scheme=rope scheme=alibi | --grid rope
sweep <- --grid steps=1,2 | --grid scheme=rope --set width=32 width=64 | --grid scheme=rope --set scheme=alibi
sweep <- --grid scheme=rope --seeds 3 --set seeds=4 | --grid scheme=rope --only color=red
sweep <- --grid scheme=rope,alibi --seeds 90000 | --grid scheme=rope --save nowhere/x.toml
sweep <- --grid scheme=rope --save x.py
status <- no/such/run |
table <- no/such/run | no/such/run --format xml
plot <- no/such | no_such.py | mine --figure pie | first_look --metric last
export <- no/such/run | mine --bundle x.json --metric last
compare <- no/such/run rope alibi | | mine rope --size 8 | mine rope --metric last | mine nonsense
describe <- nonsense
cite <- nonsense
explain <- nonsense | rope --len 1 | rope --len 100000 | '[rope, nope]' | rope --png nowhere/x.png
explain <- rope --trained no/such | attention --form sideways | attention --scheme ropee
explain <- attention --scheme '[rope, nope]' | attention --scheme "learned @ given('coupled')"
explain <- attention --form cross --scheme 'rope @ random_sorted(64)' | attention --form cross --causal
explain <- attention --seed -1 | attention --seed one | attention --trained mine | attention --html x.pdf
explain <- attention --html nowhere/x.html | attention --png x.gif | rope --blank | rope --scheme alibi
explain <- rope --html x.html | aliases alibi | aliases 'rope + alibi' | aliases --head 7 | aliases --back 16
explain <- aliases --len 3 | aliases --within 1 | aliases --within nan
frobnicate <-
help <- frobnicate
"""
"""Commands that are refused, whatever is named."""


def rows(table):
    """Each command of a table, as words, with what stands before it."""
    for line in table.strip().replace("SWEEP", "sweep --grid scheme=rope --name mine").splitlines():
        head, _, commands = line.partition(" <-")
        for command in commands.split("|"):
            yield pytest.param(head, shlex.split(command), id=f"{head}: {command.strip()}")


@pytest.mark.parametrize(("command", "words"), list(rows(BARE)))
def test_a_bad_command_line_gets_one_sentence_and_writes_nothing(refuse, command, words):
    sentence = refuse(command, *words)
    assert len(sentence) > 20 and sentence.rstrip()[-1] in ".?`" and "query_start" not in sentence, sentence


@pytest.mark.parametrize(("named", "words"), list(rows(NAMED)))
def test_the_sentence_has_the_nearest_name_or_how_it_is_written_here(refuse, named, words):
    assert named in refuse(*words)


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        (
            ["describe", "ropee"],
            f"Known: rope, mrope, rerope, carope, rope_axes and {MORE} more; `posenc list schemes` has all.",
        ),
        (["run", "--task", "revers_string"], "more; `posenc list tasks` has all."),
        (["run", "--step", "3"], "more; `posenc run --help` has all."),
        (["run", "--preset", "rouss"], "Known: ruoss, "),
        (["plot", "x", "--figure", "lenght"], "Known: length, heatmap, error, place, excess, curves, steps, seeds."),
    ],
)
def test_a_long_list_of_names_is_cut_at_the_five_nearest(refuse, words, cut):
    sentence = refuse(*words)
    assert cut in sentence and sentence.count(", ") <= 11 and len(sentence) < 260


def test_an_output_path_that_is_a_file_is_refused_before_training(posenc, tmp_path):
    (tmp_path / "runs").write_text("")
    said = posenc("run", "--scheme", "nope", "--length", "4", "--name", "x")
    assert said.code == 2 and "is a file" in said.err


def test_debug_shows_where_an_error_arose(posenc):
    with pytest.raises(ValueError, match="'ropee'"):
        posenc("describe", "ropee", "--debug")


def test_control_characters_in_a_name_never_reach_the_terminal(posenc):
    assert "\x1b" not in posenc("describe", "ro\x1b[31mpe").err


def test_the_same_holds_for_a_process_of_its_own(tmp_path, left):
    words = ["run", "--scheme", "ropee"]
    done = subprocess.run([sys.executable, "-m", "posenc", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1
    assert left() == []
