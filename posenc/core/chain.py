"""Several plain schemes on one attention, hook by hook."""

from __future__ import annotations

from typing import Any, cast

from posenc.core.scheme import LIMITS, ORDER, ROLES, At, Dims, Role, Scheme, Tile


class Chain(Scheme, name=None):
    """Several plain schemes on one attention, in order. All that belongs to parts is a tuple, an entry for each."""

    parts: tuple[Any, ...]

    name = cast(Any, property(lambda self: " + ".join(map(_name, self.parts))))
    reads = cast(Any, property(lambda self: max((s.reads for s in self.parts), key=ORDER.index)))
    contextual = cast(Any, property(lambda self: any(s.contextual for s in self.parts)))
    family = cast(Any, property(lambda self: self.parts[0].family))

    def validate(self):
        if not 2 <= len(self.parts) <= 32 or any(isinstance(s, Chain) or not isinstance(s, Scheme) for s in self.parts):
            raise ValueError("A sum has at most 32 and at least two parts, each a plain scheme, such as a + b + c.")
        names = [_name(s) for s in self.parts]
        if sum(s.overrides("normalize") for s in self.parts) > 1:
            raise ValueError(f"Of {', '.join(names)}, at most one may replace softmax; leave one out.")
        for n, s in enumerate(self.parts):
            before, after = self.parts[:n], self.parts[n + 1 :]
            if s.precedence == "temperature" and any(
                o.overrides("query") and o.precedence != "temperature" for o in before
            ):
                raise ValueError(f"{names[n]!r} is a temperature, so it stands before what it scales; write it first.")
            if s.precedence == "first" and (
                any(o.overrides("score") for o in before) or any(o.overrides("query", "key") for o in before + after)
            ):
                raise ValueError(f"{names[n]!r} replaces q·k, so it comes first and no other scheme may change q or k.")
            late = [_name(o) for o in after if o.overrides("query", "key")]
            if s.precedence == "last" and late:
                raise ValueError(
                    f"{names[n]!r} gives q and k more features, so {late[0]!r} cannot change them after it; write"
                    f" {names[n]!r} last."
                )

    @property
    def limits(self):
        by_part = [s.limits for s in self.parts]
        joined = {n: "; ".join(limits[n] for limits in by_part if n in limits) for n in LIMITS}
        if joined["reencoded"] and self.contextual and not joined["cache"]:
            reads = next(_name(s) for s in self.parts if s.contextual)
            joined["cache"] = (
                f"{joined['reencoded']}, and {reads!r} would have to read features again that no cache keeps"
            )
        return {name: why for name, why in joined.items() if why}

    def bind(self, dims: Dims):
        bound = Chain(tuple(s.bind(dims) for s in self.parts))
        bound.scale(dims.head)  # refuses two scales
        return bound

    def check_positions(self, p: Any, position):
        for n, s in enumerate(self.parts):
            s.check_positions(p[n], position[n])

    def init(self, key, dims):
        raise TypeError("The parameters of a chain are those of its parts; make them with posenc.init.")

    init_head = init

    def carry(self, dims: Dims):
        return tuple(s.carry(dims) for s in self.parts)

    def neighbour_carry(self, dims: Dims) -> Any:
        each = tuple(s.neighbour_carry(dims) for s in self.parts)
        return {role: tuple(past.get(role) for past in each) for role in ROLES if any(role in past for past in each)}

    def neighbours(self, p: Any, role: Role, a, at: At, past):
        after = []
        for n, s in enumerate(self.parts):
            a, part = (a, None) if past[n] is None else s.neighbours(p[n], role, a, _at(at, n), past[n])
            after.append(part)
        return a, tuple(after)

    def scale(self, d: int) -> float:
        by_scale = {s.scale(d): s for s in self.parts if s.overrides("scale")}
        if len(by_scale) > 1:
            each = " and ".join(f"{_name(s)} by {value:.6g}" for value, s in by_scale.items())
            raise ValueError(f"Two schemes multiply q·k differently, {each}; combine schemes of one scale.")
        return next(iter(by_scale), d**-0.5)

    def embed(self, p: Any, x, at: At):
        for n, s in enumerate(self.parts):
            x = s.embed(p[n], x, _at(at, n))
        return x

    def locate(self, p: Any, x, at: At, carry):
        pairs = [s.locate(p[n], x, _at(at, n), carry[n]) for n, s in enumerate(self.parts)]
        return tuple(info for info, _ in pairs), tuple(new for _, new in pairs)

    def query(self, p: Any, q, info):
        return self._through("query", p, q, info)

    def key(self, p: Any, k, info):
        return self._through("key", p, k, info)

    def _through(self, hook: str, p: Any, a, info):
        passed = []
        for n, s in enumerate(self.parts):
            a, part_info = getattr(s, hook)(p[n], a, info[n])
            passed.append(part_info)
        return a, tuple(passed)

    def value(self, p: Any, v, info):
        for n, s in enumerate(self.parts):
            v = s.value(p[n], v, info[n])
        return v

    def pair(self, p: Any, k, v, info):
        passed = []
        for n, s in enumerate(self.parts):
            k, part_info, v = s.pair(p[n], k, v, info[n])
            passed.append(part_info)
        return k, tuple(passed), v

    def score(self, p: Any, s, tile: Tile):
        for n, part in enumerate(self.parts):
            s = part.score(p[n], s, _tile(tile, n))
        return s

    def normalize(self, p: Any, s, tile: Tile):
        n = next(n for n, part in enumerate(self.parts) if part.overrides("normalize"))
        return self.parts[n].normalize(p[n], s, _tile(tile, n))

    def value_bias(self, p: Any, a, tile: Tile) -> Any:
        adds = [n for n, part in enumerate(self.parts) if part.overrides("value_bias")]
        return sum(self.parts[n].value_bias(p[n], a, _tile(tile, n)) for n in adds)

    def output(self, p: Any, o, info):
        for n, s in reversed(list(enumerate(self.parts))):
            o = s.output(p[n], o, info[n])
        return o

    def overrides(self, *hooks):
        return any(s.overrides(*hooks) for s in self.parts)

    def lookup(self, info, key_info, rows):
        return tuple(s.lookup(info[n], key_info[n], rows) for n, s in enumerate(self.parts))


def _name(s: Any) -> str:
    return getattr(s, "name", type(s).__name__)


def _at(at: At, n: int) -> At:
    return at._replace(position=at.position[n])


def _tile(tile: Tile, n: int) -> Tile:
    return tile._replace(query_info=tile.query_info[n], key_info=tile.key_info[n], distance=tile.distance[n])
