"""Models of transformers are called by names and caches of their own."""

import functools

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)
SMALL = {"vocab_size": 31, "num_hidden_layers": 2, "hidden_size": 12}
SMALL |= {"intermediate_size": 16, "max_position_embeddings": 32}
GPT2 = {"vocab_size": 31, "n_positions": 24, "n_embd": 12, "n_layer": 2}
GPT2 |= {"n_head": 3, "bos_token_id": 0, "eos_token_id": 0}
T5 = {"vocab_size": 31, "d_model": 12, "d_kv": 4, "d_ff": 16}
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: GPT2LMHeadModel(GPT2Config(**GPT2)), "language-model"),
        (
            lambda: LlamaForCausalLM(LlamaConfig(**SMALL, **HEADS)),
            "language-model",
        ),
        (
            lambda: BertModel(BertConfig(**SMALL, num_attention_heads=3)),
            "encoder",
        ),
        (
            lambda: T5ForConditionalGeneration(
                T5Config(**T5, num_layers=1, num_heads=3)
            ),
            "encoder-decoder",
        ),
    ],
    ids=["GPT-2", "Llama", "BERT", "T5"],
)
def test_at_random_weights_they_are_healthy(make, kind):
    torch.manual_seed(0)
    report = here(make(), kind=kind)
    assert report.passed, report
    assert report.inside
    assert all(x.startswith("healthy") for x in report.inside.values())
