"""No positional encoding."""

from posenc.core.scheme import Scheme


class NoPE(Scheme, name="nope"):
    """No encoding: only the causal mask gives the tokens an order (Haviv et al., 2022; Kazemnejad et al., 2023).

        s_ij = q_i · k_j / √d

    Without a causal mask attention is a function of a set: permuting the tokens permutes the outputs, and a task that
    depends on order cannot be solved. A test states this, which makes it the negative control of every comparison.

    ```bibtex
    @inproceedings{kazemnejad2023impact,
      title = {The Impact of Positional Encoding on Length Generalization in Transformers},
      author = {Kazemnejad, Amirhossein and Padhi, Inkit and Natesan Ramamurthy, Karthikeyan and Das, Payel and
                Reddy, Siva},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2023},
      eprint = {2305.19466},
    }
    ```
    """

    extrapolates = "some: about 1.5 times the length on copy-like tasks (Kazemnejad et al., 2023)"
