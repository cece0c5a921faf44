"""Norms of transformers, and models that write with a cache."""

from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from tools.measure.doctor.peer import (
    Made,
    config,
    heads,
    hidden,
    path,
    peer,
)


@peer("Llama's RMSNorm", "transformers", "rms-norm")
def llama_norm(draw: Random) -> Made:
    """The norm of Llama, which computes in float32."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    setting = {"d": draw.randint(2, 17), "eps": draw.choice((1e-5, 1e-6))}
    return LlamaRMSNorm(*setting.values()), {}, setting


@peer("T5's LayerNorm", "transformers", "rms-norm")
def t5_norm(draw: Random) -> Made:
    """The norm of T5, which is an RMSNorm in spite of its name."""
    from transformers.models.t5.modeling_t5 import T5LayerNorm

    setting = {"d": draw.randint(2, 17), "eps": draw.choice((1e-5, 1e-6))}
    return T5LayerNorm(*setting.values()), {}, setting


def write_on(model: nn.Module, words: Tensor, cache: Any) -> tuple[Any, Any]:
    """One step of a model of transformers with its cache."""
    with torch.no_grad():
        made = model(input_ids=words, past_key_values=cache, use_cache=True)
    return made.logits, made.past_key_values


@peer("GPT-2 with its cache", "transformers", "cached-decoder")
def gpt2_writing(draw: Random) -> Made:
    """A small GPT-2, given words in chunks."""
    import transformers

    size = heads(draw)
    setting = {
        "n_embd": size["d_model"],
        "n_head": size["n_heads"],
        "n_layer": draw.choice((1, 2)),
    } | path(draw)
    chosen = config("GPT2Config", vocab_size=5, n_positions=16, **setting)
    model = transformers.GPT2LMHeadModel(chosen).eval()
    return model, {"call": write_on}, setting


@peer("Llama with its cache", "transformers", "cached-decoder")
def llama_writing(draw: Random) -> Made:
    """A small Llama, given words in chunks."""
    import transformers

    setting = hidden(draw, even=True) | path(draw)
    setting["num_key_value_heads"] = 1
    setting["num_hidden_layers"] = draw.choice((1, 2))
    chosen = config(
        "LlamaConfig", vocab_size=5, intermediate_size=16, **setting
    )
    model = transformers.LlamaForCausalLM(chosen).eval()
    return model, {"call": write_on}, setting


PEERS = (
    llama_norm,
    t5_norm,
    gpt2_writing,
    llama_writing,
)
