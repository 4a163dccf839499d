"""The same angles at four places: at the input, on queries and keys, in the score, on values.

One geometric series of angles enters attention in four ways. On queries and keys (RoPE) and in the score (Sandwich) it
is a distance from the start; at the input (sinusoids) distances have to be learned from products; on values (VO-RoPE
without its turn of queries and keys) it shows how far away a value was, after its content found it.

Source: Vaswani et al. (2017), Su et al. (2021), Chi et al. (2023), Su (2025), one scheme each; the comparison is ours,
and so are its predictions: finding a token by its distance needs distances in the scores.
Setting: decoders, since a symmetric Sandwich peaks at the nearest key; heads of 16 features, so that rope,
sandwich(dim=16) and vo_rope share eight angles, while sinusoids over a width of 64 have 32, those eight among them.
Cost: about 25 minutes on one core.
Command: posenc sweep experiments/sites.py
Variation: posenc sweep experiments/sites.py --set steps=2000 --name longer
Result: medians of six seeds, at the last token of a row. rope names the token three places back at 32 tokens, twice the
longest trained on, in 0.97 of the rows, and vo_rope in 0.92. Angles on values alone learn the trained lengths, 0.99 at
16, and keep 0.59 at 32, where the mean over all tokens gives 0.83 and hides the difference. Sinusoids learn them too,
1.00, and stop there, 0.06 at 20. Sandwich has not learned them, 0.20 at 16, and its loss still fell by 13 % over the
last half of the steps; nor has nope, 0.13. So rope is ahead of these two on the trained lengths, and
what they would do beyond stays open. A pointer needs
turned queries and keys: at 16 tokens rope has 1.00 and vo_rope 1.00, and the other places at most 0.31; at 32 rope has
0.58. Sinusoids name an index at 32, 1.00, and so does the causal mask alone, 1.00; rope loses it, 0.32.
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
    BACK: "Token three places back",
    "pointer_back(reach=4)": "Token that a pointer shows",
    "index_of_token(indices=8)": "Index of the marked token",
}
names = {VALUES: "values alone", "vo_rope": "values too", "rope": "queries and keys", "sandwich(dim=16)": "score"}
names |= {"sinusoidal": "input", "nope": "nowhere"}
counted = "tokens"
plan = Plan(steps=800, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 16, 20, 24, 32))


def runs():
    base = Run(model="decoder", width=64, depth=2, heads=4, hidden=128, batch=32, length=16, shortest=8)
    return grid(base, task=[BACK, "pointer_back(reach=4)", "index_of_token(indices=8)"], scheme=SITES)
