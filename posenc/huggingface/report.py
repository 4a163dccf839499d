"""What was read of a config: the scheme, the settings that made it, and those that were left aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ConfigReport:
    """How `from_hf` read a config.

    `read_as` is the model type whose code was taken, another one than `model_type` where `like=` named it. `used` are
    the settings that decided the scheme. `aside` are settings that concern attention and not the scheme, each with what
    to do about it.
    """

    scheme: Any
    model_type: str | None
    read_as: str
    used: tuple[str, ...]
    aside: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        from posenc.naming import spec

        read = self.read_as if self.read_as == self.model_type else f"{self.model_type} read as {self.read_as}"
        lines = [f"{read}: {spec(self.scheme)}", f"used: {', '.join(self.used) or 'the defaults of the type'}"]
        return "\n".join(lines + [f"left aside: {name}, {why}" for name, why in self.aside])
