"""Brackets."""

from tests.tasks.law import words


def shapes(length, depth):
    """All ways up and down from 0 to 0 within a depth."""

    def longer(path, d):
        if len(path) == length:
            return [path] if d == 0 else []
        up = longer([*path, 1], d + 1) if d < depth else []
        return up + (longer([*path, -1], d - 1) if d else [])

    return longer([], 0)


def dyck(depth, length=8, kinds=2):
    found = []
    for shape in shapes(length, depth):
        for chosen in words(kinds, length // 2):
            fresh, stack, text = iter(chosen), [], []
            for way in shape:
                if way > 0:
                    stack.append(next(fresh))
                    text.append(stack[-1])
                else:
                    text.append(kinds + stack.pop())
            found.append(tuple(text))
    return dict.fromkeys(found, 1 / len(found))


LAWS = {"dyck(kinds=2, depth=3)": (8, dyck, 3), "dyck(full=True, kinds=2, depth=3)": (8, dyck, 3)}

PLANTED = [
    # a word that goes a bracket deeper than the stack loses the kind of that bracket
    ("dyck(kinds=2, depth=3)", "dyck:Dyck.make",
     "_rises(n_max, deepest)", "_rises(n_max, deepest + 1)[:, :-1]", "oracle"),
]  # fmt: skip
