"""The options of `posenc sweep` that say who trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tyro.conf import arg

from posenc.lab.cli.engines import Engine, RayEngine, SlurmEngine, Team
from posenc.lab.cli.work import number
from posenc.lab.run.slurm import Slurm


@dataclass(frozen=True)
class EngineOptions:
    """Engine of a sweep, and the options of each engine."""

    engine: Annotated[Literal["here", "slurm", "ray"], arg(metavar="{here,slurm,ray}")] = "here"
    """Engine that trains: this machine, an array of jobs of SLURM, or the nodes of a Ray cluster."""
    slurm_workers: Annotated[int | None, arg(name="slurm.workers", metavar="N", help_behavior_hint="(default: 1)")] = (
        None
    )
    """How many workers SLURM starts."""
    slurm_time: Annotated[int | None, arg(name="slurm.time", metavar="MIN", help_behavior_hint="")] = None
    """Minutes that each may run; it saves before they end, and is queued again."""
    slurm_partition: Annotated[str | None, arg(name="slurm.partition", metavar="P", help_behavior_hint="")] = None
    """The partition."""
    slurm_cpus: Annotated[int | None, arg(name="slurm.cpus", metavar="N", help_behavior_hint="")] = None
    """Cores of each worker."""
    slurm_gpus: Annotated[int | None, arg(name="slurm.gpus", metavar="N", help_behavior_hint="")] = None
    """GPUs of each worker."""
    slurm_extra: Annotated[str | None, arg(name="slurm.extra", metavar="TEXT", help_behavior_hint="")] = None
    """Further options of sbatch, such as "--account=lab --constraint=a100"."""
    ray_address: Annotated[
        str | None, arg(name="ray.address", metavar="HOST:PORT", help_behavior_hint="(default: auto)")
    ] = None
    """The head of the Ray cluster; auto is the cluster that runs on this machine."""
    ray_cpus: Annotated[int | None, arg(name="ray.cpus", metavar="N", help_behavior_hint="(default: 1)")] = None
    """Cores for each group of trials."""
    ray_gpus: Annotated[float | None, arg(name="ray.gpus", metavar="N", help_behavior_hint="(default: 0)")] = None
    """GPUs for each group of trials; 0.5 shares one."""
    checkpoints: Annotated[str | None, arg(metavar="FOLDER|URL", help_behavior_hint="")] = None
    """Store for checkpoints of Ray's nodes: a folder that all see, or gs://, s3://. Default is the run folder."""


def select_engine(options: EngineOptions, workers: str | None) -> Engine | None:
    """Return the engine that runs the workers, if it is not this process. Raises `ValueError` for options of another
    engine."""
    typed = {engine: _typed(options, engine) for engine in ("slurm", "ray")}
    if options.checkpoints is not None:
        typed["ray"]["checkpoints"] = options.checkpoints
    for engine, values in typed.items():
        if values and options.engine != engine:
            name = next(iter(values))
            option = f"--{name}" if name == "checkpoints" else f"--{engine}.{name}"
            raise ValueError(f"{option} is an option of --engine {engine}; add that, or leave it out.")
    if options.engine == "here":
        return None if workers is None else Team(number(workers))
    if workers is not None:
        instead = "say --slurm.workers N" if options.engine == "slurm" else "leave it out"
        raise ValueError(f"--workers is for this machine; {instead} with --engine {options.engine}.")
    return SlurmEngine(Slurm(**typed["slurm"])) if options.engine == "slurm" else RayEngine(**typed["ray"])


def _typed(options: EngineOptions, engine: str) -> dict[str, Any]:
    prefix = f"{engine}_"
    return {n.removeprefix(prefix): v for n, v in vars(options).items() if n.startswith(prefix) and v is not None}
