"""Masks, against the sentence that each of them says."""

import inspect
import math

import pytest
import torch

from selfattn.dot_product import attention
from selfattn.masks import (
    as_keep,
    block_mask,
    causal_mask,
    document_mask,
    draw,
    indices,
    padding_mask,
    prefix_mask,
    window_mask,
)

SIZES = [(7, 7), (5, 11), (11, 5), (1, 7), (0, 3), (3, 0)]


def table(n_q, n_k, says):
    """A mask by asking the sentence for every query and every key.

    Query i of n_q sits at position i + n_k - n_q: the last on the last.
    """
    rows = [[says(i + n_k - n_q, j) for j in range(n_k)] for i in range(n_q)]
    return torch.tensor(rows, dtype=torch.bool).reshape(n_q, n_k)


@pytest.mark.parametrize(("n_q", "n_k"), SIZES)
def test_indices_end_together(n_q, n_k):
    i, j = indices(n_q, n_k)
    assert i.shape == (n_q, 1)
    assert j.shape == (1, n_k)
    assert j.flatten().tolist() == list(range(n_k))
    assert i.flatten().tolist() == list(range(n_k - n_q, n_k))


@pytest.mark.parametrize(("n_q", "n_k"), SIZES)
def test_causal_hides_the_future_and_nothing_else(n_q, n_k):
    mask = causal_mask(n_q, n_k)
    assert mask.dtype == torch.bool
    assert torch.equal(mask, table(n_q, n_k, lambda i, j: j <= i))


@pytest.mark.parametrize("window", [1, 2, 3, 100])
@pytest.mark.parametrize(("n_q", "n_k"), SIZES)
def test_a_window_counts_the_querys_own_position(n_q, n_k, window):
    near = table(n_q, n_k, lambda i, j: -window < j - i < window)
    assert torch.equal(window_mask(n_q, n_k, window), near)


def test_a_causal_window_of_three_sees_three_keys():
    mask = window_mask(7, 7, 3) & causal_mask(7, 7)
    assert mask.sum(dim=1).tolist() == [1, 2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("window", [0, -2])
def test_a_window_without_its_own_position_is_refused(window):
    with pytest.raises(ValueError, match=rf"at least 1, but window={window}"):
        window_mask(5, 5, window)


def test_padding_leaves_the_first_keys(device):
    mask = padding_mask(torch.tensor([3, 0, 5], device=device), 5)
    assert mask.shape == (3, 1, 1, 5)
    assert mask.dtype == torch.bool
    assert mask.device.type == device
    assert mask[:, 0, 0].tolist() == [
        [True, True, True, False, False],
        [False] * 5,
        [True] * 5,
    ]


@pytest.mark.parametrize("prefix", [0, 1, 3])
@pytest.mark.parametrize(("n_q", "n_k"), SIZES[:4])
def test_a_prefix_is_open_to_all_and_the_rest_is_causal(n_q, n_k, prefix):
    says = table(n_q, n_k, lambda i, j: j < prefix or j <= i)
    assert torch.equal(prefix_mask(n_q, n_k, prefix), says)


@pytest.mark.parametrize("prefix", [-1, 8])
def test_a_prefix_that_cannot_be_is_refused(prefix):
    with pytest.raises(ValueError, match=f"prefix={prefix} and n_k=7"):
        prefix_mask(5, 7, prefix)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("n_q", "n_k"), SIZES)
def test_a_block_sees_itself_and_no_other(n_q, n_k, size):
    # The last block may be cut off; queries before the first key have their
    # own, which no key is in.
    says = table(
        n_q, n_k, lambda i, j: math.floor(i / size) == math.floor(j / size)
    )
    assert torch.equal(block_mask(n_q, n_k, size), says)


@pytest.mark.parametrize("size", [0, -2])
def test_a_block_without_a_position_is_refused(size):
    with pytest.raises(ValueError, match=rf"at least 1 .*size={size}"):
        block_mask(5, 5, size)


def test_a_document_sees_itself_and_no_other(device):
    documents = torch.tensor([[4, 4, 9, 9, 9], [1, 2, 1, 2, 2]], device=device)
    mask = document_mask(documents)
    assert mask.shape == (2, 1, 5, 5)
    assert mask.device.type == device
    for b, names in enumerate(documents.tolist()):
        says = table(5, 5, lambda i, j, names=names: names[i] == names[j])
        assert torch.equal(mask[b, 0].cpu(), says)


def test_documents_in_one_row_are_as_if_each_were_alone():
    first, second = (
        [torch.randn(n, 5, dtype=torch.float64) for _ in range(3)]
        for n in (3, 7)
    )
    packed = [torch.cat(pair) for pair in zip(first, second, strict=True)]
    documents = torch.tensor([[0] * 3 + [1] * 7])
    mask = document_mask(documents)[0, 0]
    for causal in (False, True):
        alone = [attention(*one, causal=causal) for one in (first, second)]
        torch.testing.assert_close(
            attention(*packed, mask=mask, causal=causal), torch.cat(alone)
        )


@pytest.mark.parametrize("lengths", [[3, 6], [-1, 2]])
def test_a_length_that_cannot_be_is_refused(lengths):
    with pytest.raises(
        ValueError, match=rf"between 0 .*lengths=\[{lengths[0]}.* n_k=5"
    ):
        padding_mask(torch.tensor(lengths), 5)


def test_padding_lies_where_the_lengths_lie():
    lengths = torch.tensor([3, 1])
    with torch.device("meta"):  # where new tensors go unless told otherwise
        assert padding_mask(lengths, 5).device == lengths.device


@pytest.mark.parametrize(
    "make",
    [
        causal_mask,
        lambda n_q, n_k, device: window_mask(n_q, n_k, 2, device=device),
        lambda n_q, n_k, device: prefix_mask(n_q, n_k, 2, device=device),
        lambda n_q, n_k, device: block_mask(n_q, n_k, 2, device=device),
        lambda n_q, n_k, device: indices(n_q, n_k, device=device)[0],
        lambda n_q, n_k, device: indices(n_q, n_k, device=device)[1],
    ],
)
def test_a_mask_is_made_on_the_device_asked_for(make, device):
    assert make(3, 5, device="meta").device.type == "meta"
    assert make(3, 5, device=device).device.type == device


def test_masks_combine_like_sentences():
    padded = padding_mask(torch.tensor([4, 2]), 7)[:, 0]
    both = causal_mask(7, 7) & padded
    assert both.shape == (2, 7, 7)
    assert torch.equal(both[1], table(7, 7, lambda i, j: j <= i and j < 2))
    either = causal_mask(7, 7) | (indices(7, 7)[1] < 3)  # a prefix for all
    assert torch.equal(either, table(7, 7, lambda i, j: j <= i or j < 3))


def test_booleans_of_the_other_convention_are_turned_round():
    blocked = torch.rand(3, 1, 7) < 0.5
    assert torch.equal(as_keep(blocked), ~blocked)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
@pytest.mark.parametrize("low", [-math.inf, "finfo.min", -1e9, -1e4])
def test_additive_masks_are_recognised_in_every_type(dtype, low):
    if low == "finfo.min":
        low = torch.finfo(dtype).min
    keep = causal_mask(5, 7)
    # -1e9 does not fit into float16 and becomes -inf there.
    low = torch.tensor(low, dtype=torch.float64).to(dtype)
    added = torch.where(keep, torch.zeros((), dtype=dtype), low)
    before = added.clone()
    assert torch.equal(as_keep(added), keep)
    assert torch.equal(added, before)


def test_the_translated_mask_masks_like_the_added_one(qkv):
    keep = torch.rand(7, 11) < 0.6
    added = torch.zeros(7, 11, dtype=torch.float64).masked_fill(~keep, -1e9)
    torch.testing.assert_close(
        attention(*qkv, mask=as_keep(added).to(qkv[0].device)),
        attention(*qkv, bias=added.to(qkv[0].device)),
    )


@pytest.mark.parametrize(
    "numbers", [[0.0, 1.0], [0.0, -3.0], [0.0, math.nan], [math.inf, 0.0]]
)
def test_numbers_that_are_a_bias_are_refused(numbers):
    with pytest.raises(ValueError, match="other numbers are a bias"):
        as_keep(torch.tensor(numbers))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_whole_numbers_are_refused(dtype):
    # Unwrapped, since with types checked at run time the hook speaks first.
    with pytest.raises(ValueError, match=rf"mask == 1 .* {dtype}"):
        inspect.unwrap(as_keep)(torch.tensor([0, 1], dtype=dtype))


def test_drawing():
    assert draw(window_mask(2, 3, 1)) == "· ■ ·\n· · ■"
    assert draw(causal_mask(2, 3)) == "■ ■ ·\n■ ■ ■"


def test_drawing_a_batch_says_what_to_do():
    with pytest.raises(ValueError, match=r"two axes.*\(2, 1, 1, 5\); index"):
        inspect.unwrap(draw)(padding_mask(torch.tensor([3, 1]), 5))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_lengths_of_any_whole_type_are_compared_as_they_are(unchecked, dtype):
    """300 keys are 44 in 8 bits, and 50 of them were refused."""
    assert padding_mask(torch.tensor([50], dtype=dtype), 300).sum() == 50
    with pytest.raises(ValueError, match=r"lengths=\[100\] and n_k=20"):
        padding_mask(torch.tensor([100], dtype=dtype), 20)


def test_masks_without_numbers_are_made_all_the_same():
    """On meta, and under vmap, nothing can be decided by the numbers."""
    assert as_keep(torch.zeros(2, 3, device="meta")).is_meta
    added = torch.tensor([[0.0, -math.inf], [0.0, 0.0]])
    both = torch.func.vmap(as_keep)(torch.stack([added, added.mT]))
    assert torch.equal(both, torch.stack([added, added.mT]) == 0)
    lengths = torch.tensor([[1, 2], [0, 3]])
    found = torch.func.vmap(lambda x: padding_mask(x, 3))(lengths)
    assert torch.equal(found[1], padding_mask(lengths[1], 3))
