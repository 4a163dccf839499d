"""Which rotary setting counts where a config says something twice, in the order of transformers 5.23.

One set for all layers: `rope_scaling` takes the place of `rope_parameters`, a setting in the set comes before the same
one beside it, and an original length beside the set comes before the one in it. A set for each type of layer:
`rope_scaling` is laid over some of them, and lengths and `truncate` beside or within them do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.huggingface.facts import LENGTH, Facts
from posenc.huggingface.settings import Settings, head_size
from posenc.language.echo import echoed

BASE, SHARE = "rope_theta", "partial_rotary_factor"
SCALED = ("llama3", "yarn", "longrope", "su")
"""Rope types with an original length."""
UNSCALED = ("default", "mrope")
"""Rope types whose frequencies are those of the base."""
UNREAD = "transformers reads it in a set for all layers only"


def rotary_sets(config: Settings, labels: set[str], facts: Facts) -> dict[str, Settings]:
    """The rotary settings of each type of layer: a base, a share if it has one, and what its rope type needs."""
    if facts.bases:
        return _by_layer_type(config, labels, facts)
    return dict.fromkeys(labels, Settings(_for_all(config, facts), {}))


def _for_all(config: Settings, facts: Facts) -> dict[str, Any]:
    """One set for all layers."""
    settings = config.get("rope_scaling") or config.get("rope_parameters")
    if settings is None and "rope_type" in facts.rope and config.get(BASE) is not None:
        raise ValueError(
            f"This model type has rotary settings of its own, of the rope_type {facts.rope['rope_type']!r}, and"
            " rope_theta alone does not say whether they hold; give rope_parameters."
        )
    settings = facts.rope if settings is None else settings
    if any(_is_label(name) for name in settings):
        raise ValueError(
            "rope_parameters are by the type of layer, but the code of this model type has one set for all; give"
            " rope_type and what it needs."
        )
    out = dict(settings)
    if BASE not in settings:
        out[BASE] = _base_beside(config, facts)
    if SHARE not in settings and (facts.fraction is not None or _kind(settings) not in UNSCALED):
        out |= _share_beside(config, facts)
    if _kind(settings) in SCALED and (LENGTH in config or facts.original is not None):
        out[LENGTH] = config.get(LENGTH, facts.original)
    elif _kind(settings) in SCALED:
        out.setdefault(LENGTH, config.get("max_position_embeddings"))
    return out


def _base_beside(config: Settings, facts: Facts) -> Any:
    """The base that is given beside the set, or the default of the type."""
    sets_given = (config[name] for name in (BASE, *facts.base_names) if _counts(name, config, facts))
    return next(sets_given, facts.base)


def _share_beside(config: Settings, facts: Facts) -> dict[str, Any]:
    """The share of a head that is given beside the set, or the default of the type; nothing where it has none."""
    if _counts(SHARE, config, facts):
        no_share = config[SHARE] is None and config.own(SHARE) and facts.fraction is not None
        return {SHARE: 1.0 if no_share else config[SHARE]}
    if facts.features and (width := config.get(facts.features)) is not None:
        return {SHARE: share_of(facts.features, width, head_size(config, facts))}
    return {} if facts.fraction is None else {SHARE: facts.fraction}


def share_of(name: str, width: int | None, head: int | None) -> float:
    """The share of a head that a number of features is, given under this name."""
    if width is None:
        return 1.0
    if head is None:
        raise ValueError(f"{name} is {width}, but this config lacks the size of a head; give head_dim.")
    if width > head or width % 2:
        raise ValueError(
            f"{name} is {width}, but a head of this config has {head} features; give an even number of 2 to {head},"
            " or head_dim."
        )
    return width / head


def _counts(name: str, config: Settings, facts: Facts) -> bool:
    """Tell whether a setting beside the set is given and read."""
    return name in config and not (config.own(name) and name in facts.ignores)


def _by_layer_type(config: Settings, labels: set[str], facts: Facts) -> dict[str, Settings]:
    """A set for each type of layer; what the code of the model type fills in is filled in."""
    sets_given = _given_sets(config, facts)
    sets = dict(facts.rope if sets_given is None else sets_given)
    beside = [name for name in sets if not _is_label(name)]
    if beside and len(beside) < len(sets):
        raise ValueError(
            f"rope_parameters are by the type of layer, and {echoed(beside[0])} stands beside the types; give it in"
            " each set, or leave it out."
        )
    if beside:
        raise ValueError(
            f"rope_parameters of this model type are by the type of layer, {' and '.join(facts.bases)}; its code"
            " ignores one set for all."
        )
    for settings in sets.values():
        _check_mapping(settings)
    if facts.sets == "own" and (scaling := config.get("rope_scaling")):
        _lay_over(sets, scaling, sets_given is not None, facts)
    scaled = any(_kind(settings or {}) != "default" for settings in sets.values())
    if facts.fraction is not None and SHARE in config and scaled:
        raise ValueError(
            f"{SHARE} stands beside sets of which one is scaled, and which of them it reaches depends on their order;"
            " give it in each set, or leave it out."
        )
    if facts.sets != "own" and sets_given is not None:
        for label in labels:
            if not sets.get(label) or facts.sets == "given" and BASE not in sets[label]:
                raise ValueError(
                    f"rope_parameters lack {label} or its rope_theta, which the code of this model type does not fill"
                    " in; give both."
                )
    return {label: Settings(_filled(dict(sets.get(label) or {}), label, config, facts), {}) for label in labels}


def _given_sets(config: Settings, facts: Facts) -> Mapping[str, Any] | None:
    """The sets that a config has; None where those of the type hold."""
    if facts.sets == "common":
        return config.get("rope_scaling") or config.get("rope_parameters")
    if facts.sets == "given" and "rope_scaling" in config:
        if config["rope_scaling"] is None:
            raise ValueError(
                "rope_scaling is None, and in this model type it takes the place of rope_parameters; leave it out."
            )
        return config["rope_scaling"]
    return config.get("rope_parameters")


def _filled(settings: dict[str, Any], label: str, config: Settings, facts: Facts) -> dict[str, Any]:
    """A set with its defaults, and without what is not read of it."""
    name, usual = facts.bases[label]
    if BASE not in settings:
        settings[BASE] = config[name] if name in config else usual
    kind = _kind(settings)
    if SHARE not in settings and kind != "default" and SHARE in config:
        settings[SHARE] = config[SHARE]
    if SHARE not in settings and facts.fraction is not None:
        settings[SHARE] = facts.fraction
    if kind in SCALED and facts.sets != "given":
        settings.setdefault(LENGTH, config.get("max_position_embeddings"))
    if "truncate" in settings and not settings.pop("truncate"):
        config.left["truncate"] = UNREAD
    return settings


def _lay_over(sets: dict[str, Any], scaling: Mapping[str, Any], sets_given: bool, facts: Facts) -> None:
    """Put the settings of `rope_scaling` over those of the types of layers that the code scales."""
    if any(_is_label(name) for name in scaling):
        raise ValueError(
            "rope_scaling has a set for each type of layer, which the code of this model type does not read; give the"
            " sets as rope_parameters."
        )
    for label in facts.scaled:
        if sets_given and sets.get(label) is None:
            raise ValueError(
                f"rope_scaling is laid over the set of {label}, which rope_parameters lack; give that set, or leave"
                " rope_parameters out."
            )
        below = sets.get(label, {"rope_type": "default"})
        if "rope_type" in below and "rope_type" not in scaling:
            raise ValueError(
                "rope_scaling has no rope_type, without which the code of this model type ignores it; add it."
            )
        sets[label] = dict(below) | dict(scaling)


def _kind(settings: Mapping[str, Any]) -> Any:
    return settings.get("rope_type", settings.get("type", "default"))


def _check_mapping(settings: Any) -> None:
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"Rotary settings of a type of layer are {echoed(settings)}; they must be a dict, or None.")


def _is_label(name: Any) -> bool:
    return str(name).endswith("attention")
