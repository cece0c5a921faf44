"""Functions from queries, keys and values to outputs."""

import math

import torch
import torch.nn.functional as F

from selfattn.doctor.museum.entry import room


@room(
    "mlc-ai/mlc-llm#pull-3426", "2026-02", kind="attention", named="no scale"
)
def fallback_without_a_scale(q, k, v):
    """The path taken where no fast kernel was to be had passed 1 as scale.

    Embeddings of a BERT agreed with the right ones to 0.86 instead of 1.
    """
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)


@room(
    "esceptico/perceiver-io#9",
    "2021-11",
    kind="attention",
    named="multiplied by the root",
)
def divided_by_what_was_to_be_multiplied(q, k, v):
    """The scale was 1/√d already, and the scores were divided by it."""
    scale = q.shape[-1] ** -0.5
    return (q @ k.mT / scale).softmax(dim=-1) @ v


@room(
    "labmlai/annotated_deep_learning_paper_implementations#146",
    "2022-09",
    kind="attention",
    named="softmax over queries",
)
def softmax_over_the_wrong_letter(q, k, v):
    """In the attention of a diffusion model, softmax ran along the queries.

    It trained as well as the mended one, and nobody could tell why.
    """
    scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("...ij,...jd->...id", scores.softmax(dim=-2), v)


@room(
    "rasbt/LLMs-from-scratch#1061",
    "2026-08",
    kind="attention",
    named="mask upside down",
    mask="block",
)
def the_other_convention_of_pytorch(q, k, v, attn_mask=None):
    """A mask that is True where one may not look went into PyTorch's function.

    There True allows, so that each token saw what comes after it;
    nn.MultiheadAttention has it the other way round.
    """
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)


@room(
    "huggingface/pytorch-image-models#pull-2236",
    "2024-07",
    kind="attention",
    named="mask after softmax",
    mask="keep",
)
def filled_after_softmax(q, k, v, attn_mask=None):
    """EVA's attention, where it was not fused, masked after softmax.

    The forbidden keys were gone, and their share of the weights with them.
    """
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
    if attn_mask is not None:
        weights = weights * attn_mask
    return weights @ v


@room(
    "georg-wolflein/good-features#pull-1",
    "2023-11",
    kind="attention",
    named="masked with zero",
    mask="keep",
)
def multiplied_with_the_mask(q, k, v, mask=None):
    """Scores were multiplied by a mask of ones and zeros before softmax.

    exp(0) is 1: what was to be hidden got a full share.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * mask
    return scores.softmax(dim=-1) @ v


@room(
    "bentrevett/pytorch-seq2seq#191",
    "2022-09",
    kind="attention",
    named="a billion in float16",
    mask="keep",
    takes=["mask", "float16", "float64", "bfloat16"],
)
def ten_billion_in_half_precision(q, k, v, mask=None):
    """Training in 16 bits ended in an error: -1e10 does not fit.

    -inf fitted, and brought NaN; the reporter settled for -1e4.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e10)
    return scores.softmax(dim=-1) @ v


@room(
    "pytorch/pytorch#41508",
    "2020-07",
    kind="attention",
    named="empty row gives nan",
    mask="keep",
    empty_row="zeros",
)
def hidden_queries_give_nan(q, k, v, mask=None):
    """With a mask for padding and a causal one, some rows were empty: NaN.

    Cutting such rows away afterwards did not help: 0 times NaN is NaN on the
    way back, too.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ v


@room(
    "facebookresearch/xformers#103",
    "2021-11",
    kind="attention",
    named="causal flag ignored",
    mask="keep",
)
def causal_only_with_another_mask(q, k, v, mask=None, causal=False):
    """The causal mask was made only where another mask was given."""
    if mask is not None and causal:
        past = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
        mask = mask & past.tril(k.shape[-2] - q.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@room(
    "PetrochukM/PyTorch-NLP#2",
    "2018-03",
    kind="softmax",
    named="over the first axis",
)
def shared_along_the_batch(scores):
    """With a single text, every weight was 1: softmax ran along the batch."""
    return F.softmax(scores, dim=0)


@room(
    "NVIDIA/FasterTransformer#43",
    "2019-08",
    kind="softmax",
    named="overflows",
)
def kernel_without_the_maximum(scores):
    """From the eighth layer on, a model's outputs were NaN.

    The kernel took exp of the scores as they were.
    """
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@room(
    "FluxML/NNlib.jl#pull-43",
    "2018-05",
    kind="softmax",
    named="maximum or zero",
)
def maximum_but_not_below_zero(scores):
    """Softmax of (-10000, -10000) failed: it subtracted max(0, largest)."""
    largest = scores.amax(dim=-1, keepdim=True)
    powers = (
        scores - torch.maximum(largest, torch.zeros(()).to(scores))
    ).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@room(
    "CASIA-IVA-Lab/DANet#48",
    "2019-04",
    kind="softmax",
    named="scores taken from the maximum",
)
def the_other_way_round(scores):
    """A reader asked why each score is taken from the maximum.

    What is least alike then weighs most. The authors had tried it the usual
    way, and it had done no better.
    """
    return F.softmax(scores.amax(dim=-1, keepdim=True) - scores, dim=-1)
