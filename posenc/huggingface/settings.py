"""The settings of one config, under one name each, with a note of those that were read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.huggingface.facts import Facts
from posenc.huggingface.kinds import check, check_names


class Settings(Mapping[str, Any]):
    """A config whose old names are replaced by new ones. `used` are the settings that were read, under their own.

    `left` are those within its parts that were left aside, each with a reason. A setting that is read has the type and
    the range that `kinds` says, or is refused by a `ValueError`.
    """

    def __init__(self, config: Mapping[str, Any], names: Mapping[str, str]):
        check_names(config)
        self._own = {names.get(name, name): name for name in config if names.get(name, name) == name}
        self._own |= {names[name]: name for name in config if name in names and names[name] not in self._own}
        self._values = {name: config[own] for name, own in self._own.items()}
        self.used: set[str] = set()
        self.left: dict[str, str] = {}

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        check(name, self._own[name], value)
        self.used.add(self._own[name])
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def own(self, name: str) -> bool:
        """Tell whether the config has a setting under this very name."""
        return self._own.get(name) == name

    def called(self, name: str) -> str:
        """The name under which the config has a setting."""
        return self._own.get(name, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def first(*values: Any) -> Any:
    """The first value that is not None. A 0 counts, for the scheme to refuse."""
    return next((value for value in values if value is not None), None)


def parts_of_head(config: Mapping[str, Any], facts: Facts) -> tuple[int, int] | None:
    """The plain and the rotated features of a head that is joined of two (latent attention); None for other heads."""
    if facts.joined is None:
        return None
    plain, rotated = facts.joined
    plain, rotated = config.get("qk_nope_head_dim", plain), config.get("qk_rope_head_dim", rotated)
    if plain is None or not rotated or rotated % 2:
        raise ValueError(
            f"qk_nope_head_dim is {plain} and qk_rope_head_dim {rotated}; give the plain and the rotated features of a"
            " head, of which the rotated ones are an even number of at least 2."
        )
    width = rotated if facts.fraction in (None, 1) else plain + rotated
    if config.get("head_dim") not in (None, width, facts.head):
        raise ValueError(
            f"head_dim is {config['head_dim']}, but the code of this model type rotates by a width of {width}, which"
            " follows from qk_nope_head_dim and qk_rope_head_dim; leave head_dim out."
        )
    return plain, rotated


def head_size(config: Mapping[str, Any], facts: Facts) -> int | None:
    """The number of features of a head; None where a config leaves it open."""
    if (parts := parts_of_head(config, facts)) is not None:
        return sum(parts)
    width = first(config.get("hidden_size"), config.get("n_embd"), config.get("d_model"))
    heads = first(config.get("num_attention_heads"), config.get("n_head"), config.get("n_heads"))
    divided = width // heads if width and heads else None
    if facts.divided:
        head = first(divided, config.get("head_dim"))
        if divided is not None and config.get("head_dim") not in (None, divided):
            raise ValueError(
                f"head_dim is {config['head_dim']}, but a head of this model type has hidden_size //"
                f" num_attention_heads features, which is {head}; leave head_dim out."
            )
    else:
        head = first(config.get("head_dim"), divided if "head_dim" in config else first(facts.head, divided))
    if head is not None and head < 1:
        raise ValueError(f"A head of this config has {head} features; give it at least 1.")
    return head
