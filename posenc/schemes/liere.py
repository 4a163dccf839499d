"""LieRE: queries and keys rotated by the exponential of learned generators, one for each axis."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, bound_setting
from posenc.numerics.orthogonal import skew, turns


class LieRE(Scheme, name="liere"):
    """Rotations of blocks of features by the exponential of learned generators, one for each axis (Ostmeier et al.,
    2024, §4).

        q'_i = R(p_i) q_i,   k'_j = R(p_j) k_j,   R(p) = exp(Σ_a p_a / extent · A_a),   A_a skew-symmetric

    A position has `axes` numbers, which may be real. `size` is the width of a block: the whole head unless it is set.
    It must divide the head. Each layer and head has its own generators, unless `shared` by the heads. The numbers above
    a generator's diagonal are its parameters and start as U(0, 2π). The authors subtract 0.5 from all entries first,
    which cancels. Left open, `extent` is the last index along an axis of a cube with as many tokens as the training
    length, so that positions in training go from 0 to 1, as the authors' do.

    Generators of different axes do not commute, so scores depend on both positions, not only on their difference. With
    one axis they do commute, and the scheme can only learn RoPE with learned frequencies in another basis, like STRING,
    ComRoPE and commuting GRAPE-M. Blocks of two features are RoPE-Mixed.

    Each token costs an exponential and a matrix for each head and block, computed once for query and key; with one axis
    the exponentials of all tokens share their eigenvectors.

    ```bibtex
    @inproceedings{ostmeier2025liere,
      title = {{LieRE}: Lie Rotational Positional Encodings},
      author = {Ostmeier, Sophie and Axelrod, Brian and Varma, Maya and Moseley, Michael and Chaudhari, Akshay S. and
                Langlotz, Curtis},
      booktitle = {International Conference on Machine Learning},
      year = {2025},
      eprint = {2406.10322},
    }
    ```
    """

    axes: int = 2
    size: int | None = None
    shared: bool = False
    extent: float | None = None

    family = "rotary"
    extrapolates = "none reported"
    samples = ({"size": 2, "shared": True, "extent": 1.0}, {"axes": 1}, {"axes": 3, "size": 4})

    def validate(self):
        if self.axes < 1:
            raise ValueError(f"'liere' has axes={self.axes}; it must be at least 1.")
        if self.extent is not None and self.extent <= 0:
            raise ValueError(f"'liere' has extent={self.extent}; it must be above 0, such as 1.")

    def bind(self, dims):
        side = max(round(dims.trained ** (1 / self.axes)) - 1, 1)
        extent = float(side) if self.extent is None else self.extent
        return dataclasses.replace(self, size=self._block(dims.head), extent=extent)

    def init(self, key, dims):
        return self._generators(key, dims) if self.shared else {}

    def init_head(self, key, dims):
        return {} if self.shared else self._generators(key, dims)

    def _generators(self, key, dims):
        size = bound_setting(self.size)
        shape = self.axes, dims.head // size, size * (size - 1) // 2
        return {"generator": jax.random.uniform(key, shape, maxval=2 * jnp.pi)}

    def locate(self, p, x, at, carry):
        exact = jnp.result_type(float)  # the type of the queries is not known yet
        share = at.position.reshape(-1, self.axes).astype(exact) / jnp.asarray(self.extent, exact)
        generator = skew(p["generator"].astype(exact), bound_setting(self.size))  # [axes, blocks, size, size]
        if self.axes == 1:
            return jax.vmap(turns, (0, None), 1)(generator[0], share[:, 0]), carry
        step = jnp.ones(1, exact)  # the eigenvectors change with the direction of the position
        mixed = jnp.einsum("la,abcd->lbcd", share, generator, precision="highest")
        return jax.vmap(jax.vmap(lambda a: turns(a, step)[0]))(mixed), carry

    def query(self, p, q, info):
        exact = bias_dtype(q)
        blocks = q.reshape(q.shape[0], -1, self._block(q.shape[-1])).astype(exact)
        rotated = jnp.einsum("lbcd,lbd->lbc", info.astype(exact), blocks, precision="highest")
        return rotated.reshape(q.shape).astype(q.dtype), ()

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _block(self, head: int) -> int:
        """The width of a block; a `ValueError` where it does not divide a head of this width."""
        size = head if self.size is None else self.size
        if size < 2 or head % size:
            near = ", ".join(str(n) for n in range(2, head + 1) if head % n == 0) or "a wider head"
            raise ValueError(f"'liere' cuts a head of {head} features into blocks of {size}; take size={near}.")
        return size
