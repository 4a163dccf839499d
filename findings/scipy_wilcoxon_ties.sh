#!/usr/bin/env bash
# scipy 1.17.1: Wilcoxon's test of equal gains is exact up to 13 pairs, and from 14 on normal without a word.
#
# Seeds that all gain the same share are common where accuracy is a count. Their differences are ties of absolute
# values, under which method="auto" tries all signs only while that is cheap. The exact p of n equal gains is 2 / 2^n.
#
# Seen on 2026-11-28 with scipy 1.17.1, Python 3.11:
#   13 pairs  p 0.000244140625, exact 0.000244140625
#   14 pairs  p 0.000182811, exact 0.000122070: half as large again
#   20 pairs  p 7.744e-06, exact 1.907e-06: four times as large
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "scipy==1.17.1" "numpy==2.4.6"
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import scipy
from scipy.stats import wilcoxon

print("scipy", scipy.__version__)
warnings.simplefilter("error")
ratios = {}
for n in (6, 13, 14, 20):
    p, exact = wilcoxon([0.1] * n).pvalue, 2 / 2**n
    ratios[n] = p / exact
    print(f"{n} pairs: p {p:.6g}, exact {exact:.6g}")
assert abs(ratios[6] - 1) < 1e-9 and abs(ratios[13] - 1) < 1e-9, "few pairs are no longer exact"
assert 1.4 < ratios[14] < 1.6 and 4 < ratios[20] < 4.2, "more pairs have changed"
PYTHON
