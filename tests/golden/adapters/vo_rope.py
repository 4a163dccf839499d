"""Values and outputs turned: the recorded numbers are the equation's own, by a double loop."""

from collections.abc import Iterator

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import checks, run

schemes = ("vo_rope",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    turned = args["queries_and_keys_rotated"]
    scheme = posenc.parse(f"vo_rope(queries_and_keys={turned}, base={args['rope_theta']!r}, layout={args['layout']!r})")
    params = {"layer": {}, "heads": {}}

    def f(q, k, v):
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        return posenc.attend(scheme, params, q, k, v, positions=a["positions"]).swapaxes(1, 2)

    names = ["q", "k", "v"]
    for check in checks(case, names, *run(f, a["cotangent"], *(a[n] for n in names))):
        # finite differences reach this far in float64
        yield check._replace(tolerance=1e-9) if "grad" in check.name else check
