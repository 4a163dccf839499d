"""Words of figures for tasks, lines and sizes: those of an experiment, and else what differs among the labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from posenc.lab.models.kinds import MODELS
from posenc.language.echo import echoed

NETWORKS = {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
"""Models without attention that are abbreviations."""

WORDS = ("attention", "model")
"""Settings whose values are words that say what they are."""


@dataclass(frozen=True)
class Words:
    """An experiment file gives them as `titles`, `names` and `counted`."""

    titles: Mapping[str, str] = field(default_factory=dict)
    """Task to a title in words: "Token three positions back"."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Label, or scheme in a label, to the name of its line: "position coupling"."""
    counted: str | Mapping[str, str] = "size"
    """The unit of a size, of all tasks or by task: "tokens", "digits"."""

    def __post_init__(self):
        kinds = {"titles": (Mapping,), "names": (Mapping,), "counted": (str, Mapping)}
        for name, allowed in kinds.items():
            value = getattr(self, name)
            if not isinstance(value, allowed) or isinstance(value, Mapping) and {*map(type, value.values())} - {str}:
                what = "texts by task or scheme" if name != "counted" else "a text, or texts by task"
                raise TypeError(f"{name} of an experiment is {echoed(value)}; give {what}.")

    def title(self, task: str) -> str:
        """The title of a task; its text where the experiment gives none."""
        return self.titles.get(task, task)

    def code(self, task: str) -> str:
        """The text of a task that has a title."""
        return task if task in self.titles else ""

    def coded(self, task: str) -> str:
        """The title of a task, with its text in brackets."""
        return f"{self.titles[task]} ({task})" if task in self.titles else task

    def unit(self, task: str) -> str:
        """Return the unit of a task's sizes."""
        return self.counted if isinstance(self.counted, str) else self.counted.get(task, "size")

    def lines(self, labels: Iterable[str]) -> dict[str, str]:
        """Label to the name of its line: what differs among them. Labels that would share a name keep their own."""
        parts = {label: label_parts(label) for label in labels}
        nets = {label for label, (_, settings) in parts.items() if not _attends(settings)}
        made = {label: self._line(label, parts, nets) for label in parts}
        shared = list(made.values())
        return {label: name if shared.count(name) == 1 else label for label, name in made.items()}

    def family(self, label: str, family: str) -> str:
        """The family of a scheme, or for a model without attention none of them."""
        return family if _attends(label_parts(label)[1]) else "network"

    def _line(self, label: str, parts: Mapping[str, tuple[str, dict[str, str]]], nets: set[str]) -> str:
        if label in self.names:
            return self.names[label]
        scheme, settings = parts[label]
        own = label in nets
        peers = [p for other, p in parts.items() if (other in nets) == own]
        if own:
            model, kind = settings["model"], settings["model"].partition("(")[0]
            several = len({p[1]["model"] for p in peers if p[1]["model"].partition("(")[0] == kind}) > 1
            head = model if several else NETWORKS.get(kind, kind)
            peers = [p for p in peers if p[1]["model"] == model]
        else:
            head = self.names.get(scheme, scheme)
        apart = {
            k: v for k, v in settings.items() if len({p[1].get(k) for p in peers}) > 1 and not (own and k == "model")
        }
        if not apart:
            return head
        apart_by = ", ".join(v if k in WORDS else f"{k} {v}" for k, v in apart.items())
        return apart_by if not own and len({p[0] for p in peers}) == 1 else f"{head}, {apart_by}"


def label_parts(label: str) -> tuple[str, dict[str, str]]:
    """The scheme of a label, and the settings that follow it in brackets."""
    match = re.fullmatch(r"(.*?) \((\w[\w ]*=.*)\)", label, re.DOTALL)
    if match is None:
        return label, {}
    texts: list[str] = []
    for text in match[2].split(", "):
        if texts and texts[-1].count("(") > texts[-1].count(")"):  # a comma within a value
            texts[-1] += f", {text}"
        else:
            texts.append(text)
    return match[1], {key: value for key, _, value in (text.partition("=") for text in texts)}


def _attends(settings: Mapping[str, str]) -> bool:
    model = settings.get("model", "encoder").partition("(")[0]
    return model not in MODELS.names() or "attention" in MODELS.find(model).reads
