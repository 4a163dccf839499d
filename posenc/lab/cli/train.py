"""Commands that train: `run`, `sweep`, `quickstart`. Run a command again to resume."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

from tyro.conf import Positional, arg

from posenc.lab.cli import FAILED, OK
from posenc.lab.cli.engine_options import EngineOptions, select_engine
from posenc.lab.cli.engines import Engine
from posenc.lab.cli.machine import start
from posenc.lab.cli.options import File, Flag, Name, Settings, Text, training
from posenc.lab.cli.output import clean, say
from posenc.lab.cli.watch import watching
from posenc.lab.cli.work import Training, Workers, save_every, whole_number
from posenc.lab.run.signals import handling, preempt
from posenc.lab.spec import committed, experiment, modules, settings
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.spec.presets import EVIDENCE, PRESETS
from posenc.lab.spec.run import Plan, Run
from posenc.lab.spec.suites import usual_model
from posenc.lab.store import disk
from posenc.language.echo import lasting, plural


@dataclass(frozen=True)
class TrainOptions:
    """The options that all training commands share."""

    name: Name = None
    """Results go to runs/NAME, or to NAME in the folder POSENC_RUNS. Default: a name made of scheme and task."""
    keep: Flag = False
    """Keep the trained parameters, as `evaluate` and `explain --trained` need; trials done without it train again."""
    lanes: Annotated[Literal["map", "vmap"] | None, arg(metavar="{map,vmap}", help_behavior_hint="")] = None
    """How the trials of one program run: one after another (map) or as one batch (vmap). Default: by device."""
    yes: Flag = False
    """Confirm a sweep of more than 100000 trials."""
    save_every: Annotated[str | None, arg(metavar="SECONDS", help_behavior_hint="(default: 300)")] = None
    """Seconds between two checkpoints of trials in training, also by POSENC_SAVE_EVERY; a signal saves at once."""
    group_size: Annotated[str | None, arg(metavar="N", help_behavior_hint="")] = None
    """Plan new groups of at most N trials, so that more workers share a run's seeds. Default: all of a run."""
    dry_run: Flag = False
    """Print what would be trained and how long it would take; train and write nothing."""
    preset: Name = None
    """A published setting by name (`posenc list presets`); explicit options override it."""


def _train(self: Any) -> int:
    names = (*settings.fields(Run), *settings.fields(Plan))
    texts = {name: text for name in names if (text := getattr(self, name)) is not None}
    source = " ".join([f"--preset {self.preset}"] * bool(self.preset) + [f"--{n} {text}" for n, text in texts.items()])
    requested = experiment.from_texts({}, texts, name=self.name, source=source, preset=self.preset, yes=self.yes)
    print_preset(requested)
    return carry_out(requested, self)


_ONE = "Train one scheme on one task, once per seed and learning rate, and print a table of the results."
One = dataclasses.make_dataclass(
    "One",
    training(),
    bases=(TrainOptions,),
    namespace={"__call__": _train, "__doc__": _ONE, "__module__": __name__},
    frozen=True,
)


@dataclass(frozen=True)
class Sweep(EngineOptions, TrainOptions):
    """Train many: the runs of an experiment file, or all combinations of what `--grid` lists.

    posenc sweep experiments/first_look.py --only scheme=rope,alibi --set steps=200

    posenc sweep --grid scheme=rope,alibi task=even_pairs,reverse_string --set width=64 --seeds 6 --name mine
    """

    file: Positional[File] = None
    """An experiment that posenc ships (its name), or an experiment file, .py or .toml."""
    grid: Settings = ()
    """Settings with several values each, NAME=A,B; every combination is a run."""
    set: Settings = ()
    """Settings of all runs, or of the plan, NAME=VALUE."""
    seeds: Text = None
    """The number of seeds, 6, or the seeds themselves, such as 0:6 or 3,5,7."""
    only: Settings = ()
    """Only the runs with these settings, NAME=A,B."""
    save: File = None
    """Write the experiment to this .toml file too."""
    workers: Workers = None
    """Train in this number of processes, each with its own cores or GPU; auto is one for each GPU, or for every two
    cores."""

    def __call__(self) -> int:
        engine = select_engine(self, self.workers)
        for option, value in (("--name", self.name), ("--save", self.save)):
            if value == "":
                raise ValueError(f"{option} is empty; give it a value, or leave it out.")
        if bool(self.file) == bool(self.grid):
            raise ValueError("`posenc sweep` takes an experiment file or --grid NAME=A,B, one of the two.")
        if self.file and self.preset is not None:
            raise ValueError(
                f"--preset fills what --grid leaves open, but {self.file!r} sets everything; leave it out."
            )
        if self.file:
            requested = from_file(committed.find(self.file) or self.file, yes=self.yes)
            seeds = [] if self.seeds is None else [f"seeds={self.seeds}"]
            requested = requested.changed(settings.texts([*self.set, *seeds], "--set"))
        else:
            options = {"name": self.name, "seeds": self.seeds, "preset": self.preset, "yes": self.yes}
            requested = experiment.from_words(self.grid, self.set, **options)
        print_preset(requested)
        requested = dataclasses.replace(requested.only(self.only), name=self.name or requested.name)
        experiment.check_many(requested.trials, self.yes)
        if self.save:
            start()
            check_names(requested)
            save(requested, Path(self.save))
        return carry_out(requested, self, engine)


QUICK_START = {"steps": "300", "seeds": "4"}
"""Steps and seeds of the quick start, fewer than in its experiment."""


@dataclass(frozen=True)
class QuickStart:
    """Train the six schemes of `first_look` on its two tasks, print a table, and draw accuracy against length. It has
    fewer seeds and steps than the committed record, and takes a minute or two."""

    name: Annotated[str, arg(metavar="NAME")] = "quickstart"
    """Results and figures go to runs/NAME."""

    def __call__(self) -> int:
        from posenc.lab.cli.plot import draw
        from posenc.lab.cli.read import stored
        from posenc.lab.figures.figures import worded
        from posenc.lab.figures.style import need_matplotlib

        need_matplotlib()
        first_look = from_file(committed.files()["first_look"])
        requested = dataclasses.replace(first_look.changed(QUICK_START), name=self.name)
        code = carry_out(requested, TrainOptions(name=self.name))
        if code == 0:
            folder = disk.root() / self.name
            draw(worded(requested, stored(str(folder))), ("length",), folder)
        return code


def print_preset(requested: Experiment) -> None:
    """Print on stderr the preset's source, the evidence for it, and its differences from the original."""
    if requested.preset is None:
        return
    preset = PRESETS[requested.preset]
    evidence, length = "; ".join(EVIDENCE[tag] for tag in preset.evidence), preset.run.length
    print(f"{preset.source} ({evidence}). Differences: {'; '.join(preset.left_out)}.", file=sys.stderr)
    moved = dict.fromkeys(f"{run.task} trains to {run.length}" for run in requested.runs if run.length != length)
    if moved and not requested.suites:  # `print_suites` prints all lengths
        print(clean(f"{', '.join(moved)}, not to the preset's {length}."), file=sys.stderr)


def print_suites(requested: Experiment, stream: TextIO) -> None:
    """Print how each task of a suite trains, since the command line does not show it."""
    if not requested.suites:
        return
    from posenc.lab.tasks import parse

    together: dict[str, dict[str, None]] = {}
    for run in requested.runs:
        model = run.model or usual_model(parse(run.task))
        together.setdefault(f"{model}, length {run.length}", {})[run.task] = None
    has = {
        n: dict.fromkeys(str(getattr(run, n)) for run in requested.runs) for n in ("batch", "width", "depth", "heads")
    }
    plan = {
        "steps": requested.plan.steps,
        "lr": ",".join(map(str, requested.plan.lr)),
        **({"tuning": len(requested.plan.tuning)} if requested.plan.tuning else {}),
        "seeds": len(requested.plan.seeds),
    }
    shared = ", ".join(f"{n}={v}" for n, v in {**plan, **{n: ",".join(values) for n, values in has.items()}}.items())
    lines = [f"{' and '.join(settings.SUITE + name for name in requested.suites)}: {shared}"]
    lines += [f"  {setting}: {', '.join(tasks)}" for setting, tasks in together.items()]
    print("\n".join(map(clean, lines)), file=stream)


def print_tuning(plan: Plan, stream: TextIO) -> None:
    """Print how learning rates will be chosen, where seeds of their own do it; and if too few are reported."""
    if not plan.tuning:
        return
    from posenc.lab.results.statistics import LEAST

    tried = len(plan.lr) * len(plan.tuning)
    line = (
        f"Of each run, {plural(tried, 'trial')} choose the learning rate ({len(plan.lr)} rates, "
        f"{plural(len(plan.tuning), 'seed')}); {plural(len(plan.seeds), 'other seed')} then train at it, and only "
        f"{'those are' if len(plan.seeds) > 1 else 'that is'} reported."
    )
    few = f" Intervals and tests need {LEAST} reported seeds; give more by seeds=…."
    print(clean(line + few * (len(plan.seeds) < LEAST)), file=stream)


def check_names(requested: Experiment) -> None:
    """Refuse unknown schemes and tasks, and invalid options of them, before anything is written.

    The modules of `mine:Mine` are imported, since whoever typed the command or wrote the experiment named them.
    """
    import posenc
    from posenc.lab import tasks
    from posenc.lab.spec.own import place_of

    modules.load_for(requested)
    for parse, texts in (
        (posenc.parse, (r.scheme for r in requested.runs)),
        (tasks.parse, (r.task for r in requested.runs)),
    ):
        for text in dict.fromkeys(texts):
            try:
                parse(text)
            except (ValueError, TypeError):
                raise
            except Exception as error:  # of a class of the user's own, which fails the runs that name it
                if not place_of(error):
                    raise


def carry_out(requested: Experiment, options: TrainOptions, engine: Engine | None = None, *, table: bool = True) -> int:
    """Train the experiment, with progress on stderr and, if wanted, the table on stdout; returns the exit code.

    Without an engine this process trains; an engine has workers train, and this process plans and touches no GPU.
    """
    training = Training(options.keep, options.lanes, save_every(options.save_every))
    size = options.group_size
    most = None if size is None else whole_number(size, "--group-size", "a number of trials from 1 on", 10**9)
    folder = disk.root() / disk.check_name(requested.name)
    if engine is not None and not options.dry_run:
        engine.check()
    with handling(preempt) if engine is None else planning():  # until the sweep, or an engine, listens itself
        if not options.dry_run:
            disk.check_writable(folder)
        _announce(requested, options.dry_run)
        from posenc.lab.run.plan import examined
        from posenc.lab.run.sweep import plan_experiment, rehearse, sweep

        outcome = examined(requested)
        print_faults(outcome.faults)
        if options.dry_run:
            print_rehearsal(rehearse(outcome.trainable[0], folder, outcome.trainable[1]), folder)
            if engine is not None:
                say(engine.preview(folder, training))
            return FAILED if outcome.faults else OK
        if engine is None:
            rehearsal = rehearse(outcome.trainable[0], folder, outcome.trainable[1])
            if rehearsal["done"] < rehearsal["trials"]:
                print(clean(expectation(requested, rehearsal)), file=sys.stderr)
            with watching() as watch:
                options_of_sweep = {"keep": training.keep, "lanes": training.lanes, "save_every": training.save_every}
                code = sweep(
                    outcome.experiment, folder, runs=outcome.runs, group_size=most, **options_of_sweep, watch=watch
                )
                code = FAILED if code == OK and outcome.faults else code
        else:
            plan_experiment(outcome.experiment, folder, most, outcome.runs)
    if engine is not None:
        code = engine.train(folder, training)
    if table and code in (OK, FAILED) and (engine is None or engine.waits):
        tabulate(folder)
    return code


def _announce(requested: Experiment, dry_run: bool) -> None:
    """Start jax, check every name, and print what the command line does not show of suites and tuning."""
    start()
    check_names(requested)
    stream = sys.stdout if dry_run else sys.stderr
    print_suites(requested, stream)
    print_tuning(requested.plan, stream)


def print_faults(faults: Sequence[str]) -> None:
    """Print on stderr what is wrong with schemes and tasks of the user's own, before the others train."""
    for fault in faults:
        print(clean(f"{fault[:-1]}; the others train."), file=sys.stderr)


@contextlib.contextmanager
def planning() -> Iterator[None]:
    """Plan on the processor, since a GPU that this process held would not be its workers'."""
    before = os.environ.get("JAX_PLATFORMS")
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        yield
    finally:
        os.environ.pop("JAX_PLATFORMS")
        if before is not None:
            os.environ["JAX_PLATFORMS"] = before


def expectation(requested: Experiment, rehearsal: Mapping[str, Any]) -> str:
    """The steps of each trial, and how long all will take, before anything is trained."""
    steps, default = requested.plan.steps, " (the default; --steps changes it)" * (requested.plan.steps == Plan().steps)
    sentence = f"{plural(steps, 'step')} for each trial{default}; expected: roughly {lasting(rehearsal['seconds'])}"
    return f"{sentence} with compiling and evaluation, longer if other programs use this machine"


def tabulate(folder: Path) -> None:
    """The table of a run folder on stdout, once it holds any result."""
    from posenc.lab.cli.read import say_table
    from posenc.lab.results.results import load

    if (folder / "plan.jsonl").exists() and ((results := load(folder).shown()).records or results.tuning):
        say_table(results)
        say(f"Results: {folder}; `posenc plot {folder}` draws them.")


def save(requested: Experiment, path: Path) -> None:
    """Write an experiment file; a file with another experiment is never overwritten."""
    from posenc.lab.spec.toml import to_toml

    text = to_toml(requested).encode()
    if path.suffix != ".toml" or path.is_dir() or not path.parent.is_dir():
        raise ValueError(
            f"--save {str(path)!r} cannot be written; use a file name that ends in .toml, in an existing folder."
        )
    if path.exists() and disk.content(path) != text:
        raise ValueError(f"--save {str(path)!r} exists and holds another experiment; give another name.")
    disk.write(path, text)


def print_rehearsal(rehearsal: Mapping[str, Any], folder: Path) -> None:
    """Print what a sweep would do, as `rehearse` found it."""
    count = f"{plural(rehearsal['trials'], 'trial')} in {plural(rehearsal['programs'], 'program')}"
    count += f", {rehearsal['done']} done"
    todo = f"{rehearsal['operations']:.1e} floating-point operations"
    timed = f"by matrix products timed just now on {rehearsal['device']}"
    peak = f"and about {rehearsal['memory'] / 2**30:.1f} GiB of memory at its peak"
    say(f"{count}, {todo}, about {lasting(rehearsal['seconds'])} {timed}, {peak}; results would go to {folder}.")
