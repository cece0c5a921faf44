"""Claims of the sources on what attention learns.

Each test says which claims of the ledger it settles, and how.
"""

import pytest
import torch

from selfattn import attention

settles = pytest.mark.settles


@settles("001-084", "holds-with-caveat")
def test_the_row_of_it_does_not_look_at_the_word_that_decides():
    words = "The animal didn't cross the street because it was too tired"
    words = words.split()
    row = [0.05, 0.7, 0.05, 0.05, 0.05, 0.05, 0.0, 0.05, 0.0, 0.0, 0.0]
    weights = torch.tensor(row, dtype=torch.float64)
    assert weights.sum() == pytest.approx(1.0)
    assert words[weights.argmax()] == "animal"
    assert weights[words.index("tired")] == 0
    # Whatever the word's value, the output is the same.
    values = torch.randn(11, 5, dtype=torch.float64)
    other = values.clone()
    other[words.index("tired")] = torch.randn(5, dtype=torch.float64)
    assert torch.equal(weights @ values, weights @ other)
    # As it would be under a causal mask, with any weights.
    q, k = torch.randn(2, 11, 5, dtype=torch.float64)
    it = words.index("it")
    rows = [attention(q, k, v, causal=True)[it] for v in (values, other)]
    assert torch.equal(*rows)
    assert not torch.equal(attention(q, k, values), attention(q, k, other))
