"""Buckets as whole numbers, from two codebases; biases from a table, and the table's gradient."""

import numpy as np

from tests.golden.case import Check
from tests.golden.through import bias, cotangent, run, scheme

schemes = ("t5",)


def compare(case):
    said, arrays = case.args, case.arrays
    text = f"t5({said['num_buckets']}, {said['max_distance']}, {said['bidirectional']})"
    t5 = scheme(text)
    if "bucket" in arrays:
        rows = {"layer": {}, "heads": {"table": np.arange(said["num_buckets"], dtype=np.float32)[None]}}
        ours = bias(t5, rows, 1, 1, len(arrays["bucket"]), positions=[0], key_positions=arrays["relative_position"])
        assert arrays["on_boundary"].dtype == bool  # where a logarithm may round either way: we agree there as well
        for name in ("bucket", "bucket_original"):
            yield Check(name, np.asarray(ours[0, 0]).astype(np.int32), arrays[name], 0)
        return
    queries, keys = said["q_len"], said["k_len"]
    positions = said["first_query_position"] + np.arange(queries, dtype=np.int32)

    def f(table):
        rows = {"layer": {}, "heads": {"table": table.T}}
        return bias(t5, rows, said["heads"], queries, keys, positions=positions)[None]

    out, back = run(f, cotangent(case), arrays["table"])
    yield Check("bias", out, arrays["bias"], 1e-7)
    if back:
        yield Check("grad_table", back[0], arrays["grad_table"], 1e-5)
