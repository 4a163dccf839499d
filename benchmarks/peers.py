"""Attention and a decoder of other libraries in PyTorch, in a separate Python without jax and posenc.

The environment variable `PEERS` names that Python, and the command `INSTALL` creates it. torch is imported inside
candidates only, so that a benchmark can report that it is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import side

INSTALL = (
    "python3 -m venv ../peers && ../peers/bin/pip install -q -r benchmarks/peers.txt"
    ' && export PEERS="$(cd ../peers && pwd)/bin/python"'
)
"""One command, from the repository's root."""
ASK = """
import json, platform, torch, x_transformers
from importlib.metadata import version
print(json.dumps({"python": platform.python_version(), "torch": torch.__version__,
                  "x-transformers": version("x-transformers"), "threads": torch.get_num_threads()}))
"""


def python() -> str | None:
    """The Python of the peers, if `PEERS` names one."""
    return os.environ.get("PEERS")


def versions() -> dict[str, Any] | str:
    """The installed versions, or a sentence that states why there are none and how to install them."""
    if (where := python()) is None:
        return f"PEERS is not set, so the peers are not installed; run: {INSTALL}"
    try:
        finished = subprocess.run([where, "-W", "ignore", "-c", ASK], capture_output=True, text=True)
    except OSError as error:
        return f"PEERS is {where!r}, which does not start ({error.strerror}); run: {INSTALL}"
    if finished.returncode:
        reason = (finished.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"PEERS is {where!r}, which lacks them ({reason}); run: {INSTALL}"
    return json.loads(finished.stdout.splitlines()[-1])


def torch_peak() -> float:
    """Operations per second that torch reaches here in float32."""
    import torch

    a = torch.ones(side.SIDE, side.SIDE)
    return side.best(lambda: a @ a)


def grown(once: Callable[[], Any]) -> tuple[Any, int | None]:
    """The result of a call, and by how many bytes the resident peak grew; None where the system does not report it.

    The peak is first reset to the memory resident now, since an earlier compilation could hide the call's growth.
    """
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return once(), None
    before = _kilobytes(status.read_text(), "VmRSS")
    result = once()
    return result, (_kilobytes(status.read_text(), "VmHWM") - before) * 1024


def _kilobytes(status: str, which: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(which))


def ready(
    once: Callable[[], list[Any]], units: float, kept: Callable[[], int], probe: Callable[[Any], Any]
) -> side.Ready:
    """A candidate whose first run compiles it and whose second measures how far memory grows beyond its result.

    `kept()` is the number of bytes it holds from one run to the next, such as a bias; its memory includes them.
    """
    began = time.perf_counter()
    once()
    took = time.perf_counter() - began
    result, more = grown(once)
    returned = sum(a.numel() * a.element_size() for a in result)
    scratch = None if more is None else max(more - returned, 0) + kept()
    return side.Ready(lambda: once() and None, units, took, scratch, torch_peak, tuple(map(float, probe(result))))


def attention(who: str, backward: bool, arrays: dict[str, Any]) -> side.Ready:
    """One attention; `arrays` holds `[L, H, d]` for q, k, v and the gradient of the output, and T5's table.

    x-transformers refuses its fused option together with T5's bias in its own layers; here its parts are assembled by
    hand, so that the fused option is used.
    """
    import torch
    from x_transformers.attend import Attend
    from x_transformers.x_transformers import AlibiPositionalBias, RelativePositionBias

    torch.manual_seed(0)
    q, k, v, do = (torch.from_numpy(arrays[n]).transpose(0, 1)[None].contiguous() for n in ("q", "k", "v", "do"))
    length, heads = q.shape[2], q.shape[1]
    learned: list[Any] = [q.requires_grad_(backward), k.requires_grad_(backward), v.requires_grad_(backward)]
    held: list[Any] = []
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def fused(bias: Any, scale: float | None) -> Callable[..., Any]:
        attend = Attend(causal=True, heads=heads, flash=True, scale=scale)
        return lambda q, k, v: attend(q, k, v, attn_bias=bias(length, length))[0]

    if who.startswith("FlexAttention"):
        call = flex(length, torch.from_numpy(arrays["slopes"]))
    elif who.startswith("SDPA, alibi"):
        gaps = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        bias = -torch.from_numpy(arrays["slopes"])[:, None, None] * gaps
        held.append(bias.masked_fill_(gaps < 0, -torch.inf)[None])
        call = lambda q, k, v: sdpa(q, k, v, attn_mask=held[0])  # noqa: E731
    elif who.startswith("SDPA"):
        call = lambda q, k, v: sdpa(q, k, v, is_causal=True)  # noqa: E731
    elif who.endswith("alibi"):
        held.append(AlibiPositionalBias(heads=heads))
        call = fused(held[0], None)
    else:
        t5 = RelativePositionBias(scale=1.0, causal=True, heads=heads)
        t5.relative_attention_bias.weight.data = torch.from_numpy(arrays["table"])
        learned.append(t5.relative_attention_bias.weight)
        call = fused(t5, 1.0)
    call = torch.compile(call) if "compiled" in who and "Flex" not in who else call

    def once():
        if not backward:
            with torch.no_grad():
                return [call(q, k, v)]
        out = call(q, k, v)
        return [out.detach(), *torch.autograd.grad(out, learned, do)]

    def kept() -> int:
        arrays = [getattr(a, "bias", a) for a in held]
        return sum(a.numel() * a.element_size() for a in arrays if a is not None)

    def probe(a: list[Any]) -> list[Any]:
        last = [*a[0][0, :, -1, 0]]
        if backward:
            last += [*a[1][0, :, -1, 0], *a[2][0, :, 3, 0], *a[3][0, :, 3, 0]]
        return last + [*a[4][2]] if len(a) > 4 else last

    return ready(once, 1.0, kept, probe)


def flex(length: int, slopes: Any) -> Callable[..., Any]:
    """Compiled FlexAttention with ALiBi (Dong et al., 2024); on a CPU it has no backward pass."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
    compiled = torch.compile(flex_attention)

    def score(s, b, h, i, j):
        return s - slopes[h] * (i - j)

    return lambda q, k, v: compiled(q, k, v, score_mod=score, block_mask=mask)


def decoder(size: Any, units: float, compiled: bool) -> side.Ready:
    """A training step of an x-transformers decoder: RoPE, fused attention, ReLU, Adam, no biases, as ours has none."""
    import torch
    from x_transformers import Decoder, TransformerWrapper

    torch.manual_seed(0)
    layers = Decoder(
        dim=size.width,
        depth=size.depth,
        heads=size.heads,
        attn_dim_head=size.width // size.heads,
        attn_flash=True,
        rotary_pos_emb=True,
        rotary_emb_dim=size.width // size.heads,
        ff_mult=size.hidden // size.width,
        ff_custom_activation=torch.nn.ReLU(),
        ff_no_bias=True,
    )
    net = TransformerWrapper(num_tokens=size.vocab, max_seq_len=size.length, attn_layers=layers)
    tokens = torch.randint(0, size.vocab, (size.batch, size.length + 1))
    run = torch.compile(net) if compiled else net
    adam = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)

    def once():
        adam.zero_grad(set_to_none=True)
        logits = run(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, size.vocab), tokens[:, 1:].reshape(-1))
        loss.backward()
        adam.step()
        return [loss.detach()]

    matrices = sum(p.numel() for p in net.parameters() if p.ndim == 2)
    return ready(once, units, lambda: 0, lambda _: [matrices])
