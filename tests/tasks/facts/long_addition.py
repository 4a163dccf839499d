"""Addition, the highest digit first."""

from tests.tasks.law import even, words

VARIED = ["addition_kazemnejad"]


def digits(ten):
    return even((13, a, 10, b, 12) for a, b in words(ten, 2))


LAWS = {"addition_kazemnejad(shortest=1)": (1, digits, 10)}

PLANTED = [
    ("addition_kazemnejad", "long_addition:AdditionKazemnejad.make", "carried(x + y, 18)", "(x + y) % 10", "oracle"),
    ("addition_kazemnejad", "long_addition:AdditionKazemnejad.make",
     "written(sums)", "jnp.full_like(n, sums.shape[1])", "oracle"),
]  # fmt: skip
