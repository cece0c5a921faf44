"""Claims of the sources that compare efficient mechanisms: what is so."""

import pytest
import torch

from selfattn import attention, flash_attention
from selfattn.cost import flops, peak_bytes

settles = pytest.mark.settles


@settles("002-109", "holds")
def test_its_memory_grows_as_n_and_its_operations_as_n_squared():
    def costs(attend, n):
        inputs = torch.zeros(3, n, 16)

        def call():
            return attend(*inputs)

        return flops(call), peak_bytes(call)

    ns = (1024, 1536, 2048)
    tiled = [costs(flash_attention, n) for n in ns]
    whole = [costs(attention, n) for n in ns]
    assert [done for done, _ in tiled] == [4 * n**2 * 16 for n in ns]
    (_, a), (_, b), (_, c) = tiled
    assert c - b == b - a  # as many bytes for each further token
    (_, a), (_, b), (_, c) = whole
    assert c - b > 1.3 * (b - a)
