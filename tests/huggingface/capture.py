"""What a model of transformers computes with at every attention: queries and keys after rotation, and logits."""

from __future__ import annotations

import contextlib
import sys
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"}
SUMS = {"add", "__add__", "__radd__", "__iadd__", "add_"}


@dataclass
class Attention:
    """One attention of one layer."""

    q: np.ndarray | None
    k: np.ndarray | None
    logits: np.ndarray


@dataclass
class Seen:
    """All attentions of one run, in their order, and the tables that were looked up."""

    attentions: list[Attention] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)


class Watch(TorchFunctionMode):
    """Records the queries and keys that each attention multiplies, and the logits that its softmax takes."""

    def __init__(self, lengths: tuple[int, ...]):
        super().__init__()
        self.lengths, self.seen, self.last = lengths, Seen(), None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            self._fused(*args, **kwargs)
        if name == "softmax" and torch.is_tensor(args[0]):
            self._softmax(args[0])
        out = func(*args, **kwargs)
        if name == "embedding" and len(args) > 1:
            self._table(*(args[:2] if args[1].is_floating_point() else args[1::-1]), out)
        if name in SUMS:
            self._sum([a for a in args if torch.is_tensor(a)])
        if name in PRODUCTS and torch.is_tensor(out) and out.ndim >= 2:
            if out.shape[-1] in self.lengths and out.shape[-2] in self.lengths:
                operands = [a for a in (*args, *kwargs.values()) if torch.is_tensor(a)]
                if name != "einsum" or len(operands) == 2:
                    self.last = (*operands[-2:], out.shape)
        return out

    def _softmax(self, logits):
        if logits.ndim < 3 or logits.shape[-2] not in self.lengths:
            return
        if logits.shape[-1] not in {n + m for n in self.lengths for m in (0, 1)}:
            return
        q, k = self._operands(logits.shape)
        self.seen.attentions.append(Attention(q, k, heads(logits)))
        self.last = None

    def _operands(self, shape):
        if self.last is None:
            return None, None
        q, k, _ = self.last
        try:
            q, k = heads(q), heads(k)
        except ValueError:
            return None, None
        if k.shape[-1] == shape[-1] and k.shape[-2] != shape[-1] or k.shape[-2] == q.shape[-1] != k.shape[-1]:
            k = k.swapaxes(-1, -2)
        return q, k

    def _fused(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if query.shape[-2] not in self.lengths or key.shape[-2] not in self.lengths:
            return
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        few = key
        if key.shape[1] != query.shape[1]:
            key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        logits = query @ key.transpose(-1, -2) * scale
        if is_causal:
            logits = logits.masked_fill(~torch.ones(logits.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
        if attn_mask is not None:
            logits = logits.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else logits + attn_mask
        self.seen.attentions.append(Attention(heads(query), heads(few), heads(logits)))
        self.last = None

    def _sum(self, operands):
        """Mark the tables whose rows are added to something."""
        places = {a.data_ptr() for a in operands}
        for table in self.seen.tables:
            table["added"] |= table["found"].data_ptr() in places

    def _table(self, ids, table, found):
        flat = ids.detach().reshape(-1)
        if flat.numel() in self.lengths and flat.numel() > 1 and bool((flat[1:] - flat[:-1] == 1).all()):
            rows = table.detach()[flat].float().numpy().copy()
            self.seen.tables.append({"first": int(flat[0]), "rows": rows, "found": found, "added": False})


def heads(a: torch.Tensor) -> np.ndarray:
    """An array of heads: [heads, …, …], the batch of one and all before it flattened."""
    a = a.detach().float()
    if a.ndim < 3:
        raise ValueError("no heads")
    return a.reshape(-1, *a.shape[-2:]).numpy().copy()


@contextlib.contextmanager
def unrotated(model: torch.nn.Module):
    """Leave out the rotation: its functions give queries and keys back as they came, in the model's own order."""
    module = vars(sys.modules[type(model).__module__])
    rotations = {name: found for name, found in module.items() if name.startswith("apply_rotary")}
    if not rotations:
        raise LookupError("its module has no function that rotates queries and keys")
    module |= dict.fromkeys(rotations, lambda q, k, *_, **__: (q, k))
    try:
        yield
    finally:
        module |= rotations


def pattern(name: str, width: int) -> torch.Tensor:
    """Numbers that a layer of this name and width gives for every token, the same in all models."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.tensor(rng.normal(size=width) * 0.8, dtype=torch.float32)


@contextlib.contextmanager
def constant(model: torch.nn.Module, lengths: tuple[int, ...]):
    """Every linear layer gives the same numbers at every token, so that positions enter after them alone."""
    handles = []
    for path, module in model.named_modules():
        if type(module).__name__ in ("Linear", "Conv1D") or isinstance(module, torch.nn.Linear):
            name = path.rpartition(".")[2]

            def replace(module, args, out, name=name):
                if (
                    not torch.is_tensor(out)
                    or out.ndim < 2
                    or not set(out.shape[:-1]) & set(lengths)
                    or out.shape[-1] in lengths
                ):
                    return out
                return pattern(name, out.shape[-1]).to(out.dtype).expand(out.shape).clone()

            handles.append(module.register_forward_hook(replace))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
