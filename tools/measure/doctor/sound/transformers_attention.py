"""The attention of models of transformers."""

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.measure.doctor.peer import (
    Contiguous,
    Made,
    config,
    heads,
    hidden,
    of_bert,
    path,
    peer,
)


@peer("BERT", "transformers", "self-attention")
def bert(draw: Random) -> Made:
    """The self-attention of BERT."""
    from transformers.models.bert.modeling_bert import BertSelfAttention

    setting = hidden(draw) | path(draw)
    made = BertSelfAttention(config("BertConfig", **setting))
    return made, of_bert(setting), setting


@peer(
    "ViT",
    "transformers",
    "self-attention",
    note="where it is not fused, its softmax is float32 whatever comes in; "
    "float64 is not asked for there",
)
def vit(draw: Random) -> Made:
    """The attention of the vision transformer."""
    from transformers.models.vit.modeling_vit import ViTAttention

    setting = hidden(draw) | path(draw)
    setting["qkv_bias"] = draw.random() < 0.5
    made = ViTAttention(config("ViTConfig", **setting))
    facts = of_bert(setting)
    if setting["attn_implementation"] == "eager":
        facts["takes"] = ["mask", "padding", "weights", "float16", "bfloat16"]
    return made, facts, setting


@peer(
    "GPT-2",
    "transformers",
    "self-attention",
    note="refuses input that is not contiguous, which its model never "
    "hands it; causal without a mask on the fused path alone",
)
def gpt2(draw: Random) -> Made:
    """The attention of GPT-2 on its fused path, causal without a mask."""
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    size = heads(draw)
    setting = {"n_embd": size["d_model"], "n_head": size["n_heads"]}
    made = GPT2Attention(
        config("GPT2Config", attn_implementation="sdpa", **setting),
        layer_idx=0,
    )
    facts = of_bert(setting) | {"causal": True, "takes": []}
    return Contiguous(made), facts, setting


class Rotating(nn.Module):
    """Llama's attention with its positions, which the model hands in."""

    def __init__(self, attention: nn.Module, rotary: nn.Module):
        super().__init__()
        self.attention, self.rotary = attention, rotary

    def forward(
        self, x: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Make positions from 0, and attend."""
        positions = torch.arange(x.shape[1])[None]
        angles = self.rotary(x, positions)
        return self.attention(x, angles, attention_mask)[0]


@peer("Llama", "transformers", "self-attention")
def llama(draw: Random) -> Made:
    """The attention of Llama, with shared key heads and rotation."""
    from transformers.models.llama import modeling_llama

    setting = hidden(draw, even=True) | path(draw)
    n_heads = setting["num_attention_heads"]
    shared = [n for n in (1, 2, 3, 6) if n_heads % n == 0]
    setting["num_key_value_heads"] = draw.choice(shared)
    chosen = config("LlamaConfig", **setting)
    made = Rotating(
        modeling_llama.LlamaAttention(chosen, layer_idx=0),
        modeling_llama.LlamaRotaryEmbedding(chosen),
    )
    causal = setting["attn_implementation"] == "sdpa"
    facts = {
        **of_bert(setting),
        "causal": causal,
        "formula": "own",
        "d_model": setting["hidden_size"],
        "n_heads": n_heads,
    }
    facts |= {"takes": []} if causal else {}
    return made, facts, setting


class OutputAlone(nn.Module):
    """T5's attention without what it returns besides: its bias, mostly."""

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend, and return one thing."""
        return self.attention(x, mask)[0]


@peer(
    "T5",
    "transformers",
    "self-attention",
    expected="no scale",
    note="does not scale: its initial weights do that instead",
)
def t5(draw: Random) -> Made:
    """The attention of T5 in a layer without a bias: it does not scale."""
    from transformers.models.t5.modeling_t5 import T5Attention

    size = heads(draw)
    setting = {
        "d_model": size["d_model"],
        "num_heads": size["n_heads"],
        "d_kv": size["d_model"] // size["n_heads"],
    }
    chosen = config("T5Config", attn_implementation="sdpa", **setting)
    made = OutputAlone(T5Attention(chosen, layer_idx=1))
    facts = of_bert(setting) | {"n_heads": size["n_heads"]}
    return made, facts, setting


@peer("T5 with its bias", "transformers", "self-attention")
def t5_with_bias(draw: Random) -> Made:
    """The attention of T5's first layer, which adds a bias by distance."""
    from transformers.models.t5.modeling_t5 import T5Attention

    size = heads(draw)
    setting = {
        "d_model": size["d_model"],
        "num_heads": size["n_heads"],
        "d_kv": size["d_model"] // size["n_heads"],
    } | path(draw)
    chosen = config("T5Config", **setting)
    made = OutputAlone(T5Attention(chosen, True, layer_idx=0))
    facts = of_bert(setting) | {"formula": "own", "scale": 1.0}
    facts |= {"d_model": size["d_model"], "n_heads": size["n_heads"]}
    return made, facts, setting


class Window(nn.Module):
    """Swin's attention in one window; what is left of it is masked."""

    def __init__(self, attention: nn.Module, size: int):
        super().__init__()
        self.attention, self.size = attention, size

    def forward(self, x: Tensor) -> Tensor:
        """Fill the window up, attend, and cut off what was filled in."""
        n = x.shape[1]
        full = F.pad(x, (0, 0, 0, self.size - n))
        mask = x.new_zeros(1, self.size, self.size)
        mask[..., n:] = torch.finfo(x.dtype).min
        return self.attention(full, mask)[0][:, :n]


@peer("Swin", "transformers", "self-attention")
def swin(draw: Random) -> Made:
    """The attention within Swin's windows, with its bias by distance."""
    from transformers.models.swin.modeling_swin import SwinAttention

    size = heads(draw)
    setting = size | {"window_size": draw.choice((4, 5))} | path(draw)
    chosen = config(
        "SwinConfig", attn_implementation=setting["attn_implementation"]
    )
    made = SwinAttention(chosen, *size.values(), setting["window_size"])
    facts = of_bert(setting) | {"formula": "own"} | size
    for name in ("mask", "mask_axes"):
        facts.pop(name, None)  # a window takes none
    return Window(made, setting["window_size"] ** 2), facts, setting


class Chunked(nn.Module):
    """Longformer's attention, which takes whole windows, on any length."""

    def __init__(self, attention: nn.Module, window: int):
        super().__init__()
        self.attention, self.window = attention, window

    def forward(self, x: Tensor) -> Tensor:
        """Pad to whole windows, hide the padding, and cut it off."""
        n = x.shape[1]
        full = F.pad(x, (0, 0, 0, -n % self.window))
        hidden_keys = (torch.arange(full.shape[1]) >= n).expand(len(x), -1)
        mask = x.new_zeros(hidden_keys.shape).masked_fill(hidden_keys, -10000)
        none = torch.zeros_like(hidden_keys)
        made = self.attention(full, mask, hidden_keys, none, False)
        return made[0][:, :n]


@peer(
    "Longformer",
    "transformers",
    "self-attention",
    note="with windows wider than the texts, so that each token sees all; "
    "its softmax is float32 also for float64, which is not asked for",
)
def longformer(draw: Random) -> Made:
    """The sliding chunks of Longformer."""
    from transformers.models.longformer import modeling_longformer

    setting = hidden(draw)
    window = draw.choice((24, 32))
    chosen = config("LongformerConfig", attention_window=[window], **setting)
    made = modeling_longformer.LongformerSelfAttention(chosen, layer_id=0)
    facts = of_bert(setting) | {
        "n_heads": setting["num_attention_heads"],
        "projections": {
            "q": "attention.query",
            "k": "attention.key",
            "v": "attention.value",
        },
        "takes": ["bfloat16"],
    }
    return Chunked(made, window), facts, setting | {"window": window}


PEERS = (
    bert,
    vit,
    gpt2,
    llama,
    t5,
    t5_with_bias,
    swin,
    longformer,
)
