"""Equal angles at four sites: at the input, on queries and keys, in the score, on values.

One geometric series of angles enters attention in four ways. On queries and keys (RoPE) and in the score (Sandwich) it
is a distance from the start. At the input (sinusoids) distances have to be learned from products. On values (VO-RoPE
without its turn of queries and keys) it shows how far away a value was, after its content found it.

Source: Vaswani et al. (2017), Su et al. (2021), Chi et al. (2023), Su (2025), one scheme each. The comparison is ours,
and so are its predictions: finding a token by its distance needs distances in the scores.

Setting: decoders, since a symmetric Sandwich peaks at the nearest key. Heads have 16 features, so that rope,
sandwich(dim=16) and vo_rope share eight angles. Sinusoids over a width of 64 have 32, those eight among them.

Cost: about 25 minutes on one core.

Command: posenc sweep experiments/sites.py

Variation: posenc sweep experiments/sites.py --set steps=2000 --name longer
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

VALUES = "vo_rope(queries_and_keys=False)"
SITES = ["nope", "sinusoidal", "rope", "sandwich(dim=16)", VALUES, "vo_rope"]
BACK = "token_k_back(k=3)"

DISTANCES = "finding a token by its distance needs distances in the scores"
COSINES = "a sum of the same cosines separates neighbours less"
INDEX = "only the input carries an index"
published = [
    *(Order(BACK, "rope", other, DISTANCES, metric="last", origin="ours") for other in ("sinusoidal", VALUES)),
    Order(BACK, "rope", "nope", DISTANCES, metric="last", over="trained", origin="ours"),
    Order(BACK, "rope", "sandwich(dim=16)", COSINES, metric="last", over="trained", origin="ours"),
    Order("index_of_token(indices=8)", "sinusoidal", "rope", INDEX, origin="ours"),
]

titles = {
    BACK: "Token three positions back",
    "pointer_back(reach=4)": "Token that a pointer shows",
    "index_of_token(indices=8)": "Index of the marked token",
}
names = {VALUES: "values alone", "vo_rope": "values too", "rope": "queries and keys", "sandwich(dim=16)": "score"}
names |= {"sinusoidal": "input", "nope": "nowhere"}
counted = "tokens"
plan = Plan(steps=800, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 16, 20, 24, 32))
reading = """
Angles on queries and keys carry a distance: at length 32 RoPE finds {token_k_back|rope|32} of the tokens three back.
On values alone they reach {token_k_back|vo_rope(queries_and_keys=False)|32}. Sinusoids at the input learn the trained
lengths ({token_k_back|sinusoidal|16}) and fail at 20 ({token_k_back|sinusoidal|20}). A pointer needs rotated queries
and keys: at the last token RoPE follows {pointer_back|rope|16|last}, sinusoids {pointer_back|sinusoidal|16|last}. An
index is the reverse: sinusoids find {index_of_token|sinusoidal|32|last} at 32, and RoPE
{index_of_token|rope|32|last}.
"""


def runs():
    base = Run(model="decoder", width=64, depth=2, heads=4, hidden=128, batch=32, length=16, shortest=8)
    return grid(base, task=[BACK, "pointer_back(reach=4)", "index_of_token(indices=8)"], scheme=SITES)
