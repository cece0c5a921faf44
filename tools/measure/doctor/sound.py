"""Peers that are sound, for `audit`, and how one of each is drawn."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Made = tuple[Any, dict[str, Any], dict[str, Any]]  # thing, facts, setting


class Peer(NamedTuple):
    """A class or function of a library, and what to tell the doctor of it."""

    name: str
    package: str
    kind: str
    make: Callable[[Random], Made]
    expected: str = ""  # what it is called although it is sound, if it is
    note: str = ""  # what a reader should know of it


PEERS: list[Peer] = []


def peer(
    name: str,
    package: str,
    kind: str,
    *,
    expected: str = "",
    note: str = "",
) -> Callable[[Callable[[Random], Made]], Callable[[Random], Made]]:
    """Add a peer to the list. For use as a decorator."""

    def add(make: Callable[[Random], Made]) -> Callable[[Random], Made]:
        PEERS.append(Peer(name, package, kind, make, expected, note))
        return make

    return add


def heads(draw: Random, even: bool = False) -> dict[str, int]:
    """A width and a number of heads that divides it.

    Never as many heads as features a head, for some mistakes would not show;
    and never two features alone, where scores that are not scaled, as T5's,
    can drive a weight below what a change of input shows.
    """
    n_heads = draw.choice((1, 2, 3, 4, 6))
    widths = (4, 6, 8) if even else (3, 4, 5, 7, 8)
    width = draw.choice([w for w in widths if w != n_heads])
    return {"d_model": n_heads * width, "n_heads": n_heads}


@peer("F.scaled_dot_product_attention", "torch", "attention")
def fused(draw: Random) -> Made:
    """PyTorch's function, behind two layouts and two meanings of a mask."""
    layout = draw.choice(("BHND", "BNHD"))
    meaning = draw.choice(("keep", "add", "block"))

    def attend(q, k, v, mask=None, is_causal=False):
        if meaning == "block" and mask is not None:
            mask = ~mask
        if layout == "BNHD":
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        made = F.scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal)
        return made.transpose(1, 2) if layout == "BNHD" else made

    facts = {"layout": layout, "mask": meaning, "mask_axes": "any"}
    return attend, facts, facts


def of_multihead(
    layer: nn.MultiheadAttention, weights: bool
) -> dict[str, Any]:
    """What to tell of PyTorch's layer."""
    return {
        "layout": "BND" if layer.batch_first else "NBD",
        "causal": False,
        "mask": "block",
        "mask_axes": "NN",
        "padding": "block",
        "packed": "by part",
        "call": {"need_weights": weights},
        "formula": "plain",
    }


@peer("nn.MultiheadAttention, self", "torch", "self-attention")
def multihead(draw: Random) -> Made:
    """PyTorch's layer on itself."""
    size = heads(draw)
    setting = {
        "bias": draw.random() < 0.5,
        "batch_first": draw.random() < 0.5,
        "dropout": draw.choice((0.0, 0.1)),
    }
    layer = nn.MultiheadAttention(*size.values(), **setting)
    weights = draw.random() < 0.5
    facts = of_multihead(layer, weights)
    return layer, facts, size | setting | {"need_weights": weights}


@peer("nn.MultiheadAttention, cross", "torch", "cross-attention")
def multihead_across(draw: Random) -> Made:
    """PyTorch's layer on a context of another width."""
    size = heads(draw)
    d_context = draw.choice((3, 5, 8, size["d_model"]))
    setting = {
        "batch_first": draw.random() < 0.5,
        "kdim": d_context,
        "vdim": d_context,
    }
    layer = nn.MultiheadAttention(*size.values(), **setting)
    facts = of_multihead(layer, draw.random() < 0.5)
    del facts["causal"]
    return layer, facts, size | setting


def torch_block(draw: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of PyTorch's blocks."""
    size = heads(draw)
    setting = {
        "dim_feedforward": draw.choice((5, 11, 16)),
        "norm_first": draw.random() < 0.5,
        "batch_first": draw.random() < 0.5,
        "activation": draw.choice(("relu", "gelu")),
        "bias": draw.random() < 0.5,
        "dropout": draw.choice((0.0, 0.1)),
    }
    names = {"d_model": size["d_model"], "nhead": size["n_heads"]}
    return names | setting, {}


@peer("nn.TransformerEncoderLayer", "torch", "encoder-block")
def torch_encoder(draw: Random) -> Made:
    """PyTorch's encoder block."""
    setting, facts = torch_block(draw)
    return nn.TransformerEncoderLayer(**setting), facts, setting


@peer("nn.TransformerDecoderLayer", "torch", "decoder-block")
def torch_decoder(draw: Random) -> Made:
    """PyTorch's decoder block."""
    setting, facts = torch_block(draw)
    return nn.TransformerDecoderLayer(**setting), facts, setting


@peer("nn.LayerNorm", "torch", "layer-norm")
def torch_layer_norm(draw: Random) -> Made:
    """PyTorch's LayerNorm."""
    setting = {
        "d": draw.randint(2, 17),
        "eps": draw.choice((1e-3, 1e-5, 1e-6)),
    }
    return nn.LayerNorm(setting["d"], eps=setting["eps"]), {}, setting


@peer("nn.RMSNorm", "torch", "rms-norm")
def torch_rms_norm(draw: Random) -> Made:
    """PyTorch's RMSNorm."""
    setting = {
        "d": draw.randint(2, 17),
        "eps": draw.choice((1e-3, 1e-5, 1e-6)),
    }
    return nn.RMSNorm(setting["d"], eps=setting["eps"]), {}, setting


def config(name: str, **options: Any) -> Any:
    """A configuration of transformers', without a vocabulary to speak of."""
    import transformers

    return getattr(transformers, name)(**options)


def hidden(draw: Random, even: bool = False) -> dict[str, int]:
    """A width and a number of heads under transformers' names."""
    size = heads(draw, even)
    return {
        "hidden_size": size["d_model"],
        "num_attention_heads": size["n_heads"],
    }


def path(draw: Random) -> dict[str, str]:
    """By which path transformers computes attention."""
    return {"attn_implementation": draw.choice(("eager", "sdpa"))}


def of_bert(setting: dict[str, Any]) -> dict[str, Any]:
    """What to tell of a layer that adds a mask with four axes."""
    return {
        "layout": "BND",
        "causal": False,
        "mask": "add",
        "mask_axes": "B1NN",
        "packed": "by part",
        "formula": "plain",
    }


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


class Contiguous(nn.Module):
    """A module whose input lies in memory row by row, whatever comes in."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        self.d_model = module.embed_dim

    def forward(self, x: Tensor) -> Tensor:
        """Copy x where it must be, and call."""
        return self.module(x.contiguous())[0]


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
    facts = of_bert(setting) | {"formula": "own"}
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


TIMM = (
    "timm needs torchvision; where that is made for CUDA and finds none, its "
    "operators must be declared before it is imported"
)


@peer("timm's Attention", "timm", "self-attention", note=TIMM)
def timm_attention(draw: Random) -> Made:
    """The attention of timm's vision transformers."""
    from timm.models.vision_transformer import Attention

    size = heads(draw)
    setting = {
        "qkv_bias": draw.random() < 0.5,
        "proj_bias": draw.random() < 0.5,
    }
    made = Attention(size["d_model"], num_heads=size["n_heads"], **setting)
    made.fused_attn = draw.random() < 0.5
    facts = of_bert(setting) | {"takes": ["float64", "bfloat16"]}
    return made, facts, size | setting | {"fused": made.fused_attn}


@peer("timm's Block", "timm", "encoder-block", note=TIMM)
def timm_block(draw: Random) -> Made:
    """The block of timm's vision transformers."""
    from timm.models.vision_transformer import Block

    size = heads(draw)
    made = Block(size["d_model"], num_heads=size["n_heads"])
    facts = {"order": "pre", "mask": "keep", "takes": []}
    return made, facts, size
