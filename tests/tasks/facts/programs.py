"""Programs of counters, run through in every way they can go."""


def choices(value, passes):
    """(variable or None, its new value, how often) for all that may be done; None does nothing."""
    held = [at for at, v in enumerate(value) if v is not None]
    found = [(None, None, passes)] + [(at, 0, 1 / len(value)) for at in range(len(value))]
    found += [(at, value[at] + 1, 7 / len(held)) for at in held if value[at] < 10]
    whole = sum(weight for _, _, weight in found)
    return [(at, new, weight / whole) for at, new, weight in found]


def programs(variables):
    """All programs of three statements; names are 11 and 12, `=` is 13; a third variable is none of these tokens."""
    names, law = [11, 12, 99][:variables], {}

    def run(text, value, p, left):
        if not left:
            held = [at for at, v in enumerate(value) if v is not None]
            for at in held:
                whole = (20, *text, 17, names[at], 19)
                law[whole] = law.get(whole, 0) + p / len(held)
            return
        for at, new, weight in choices(value, 3):
            said = (16,) if at is None else (names[at], 13, 0, 14) if new == 0 else (names[at], 15)
            after = value if at is None else (*value[:at], new, *value[at + 1 :])
            run((*text, *said), after, p * weight, left - 1)

    run((), (None,) * variables, 1.0, 3)
    told = sum(law.values())
    return {text: p / told for text, p in law.items()}


VARIED = ["counting_cope"]

LAWS = {"counting_cope(variables=2, passes=3)": (3, programs, 2)}

PLANTED = [
    ("counting_cope(passes=3)", "programs:CountingCope.make", "shown[:, None])", "0 * shown[:, None])", "oracle"),
]  # fmt: skip
