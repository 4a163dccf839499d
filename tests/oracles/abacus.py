"""McLeish et al. (2024), §3: a row of a table for a digit's place, row 0 for what is no digit."""

from tests.oracles.learned import embed as embed
