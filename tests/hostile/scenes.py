"""What some callables need: a file of weights, a world of ranks."""

import tempfile
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

D, D_FF, N_TOKENS, PLACES = 8, 12, 11, 16
BLOCK_GPT2 = {
    "ln_1.weight": (D,),
    "ln_1.bias": (D,),
    "attn.c_attn.weight": (D, 3 * D),
    "attn.c_attn.bias": (3 * D,),
    "attn.c_proj.weight": (D, D),
    "attn.c_proj.bias": (D,),
    "ln_2.weight": (D,),
    "ln_2.bias": (D,),
    "mlp.c_fc.weight": (D, D_FF),
    "mlp.c_fc.bias": (D_FF,),
    "mlp.c_proj.weight": (D_FF, D),
    "mlp.c_proj.bias": (D,),
}
BLOCK_BERT = {
    "attention.self.query": (D, D),
    "attention.self.key": (D, D),
    "attention.self.value": (D, D),
    "attention.output.dense": (D, D),
    "intermediate.dense": (D_FF, D),
    "output.dense": (D, D_FF),
}
NORMS_BERT = ("attention.output.LayerNorm", "output.LayerNorm")


def gpt2_weights() -> dict[str, Tensor]:
    """A GPT-2 of two blocks, in the names and shapes of its file."""
    shapes = {"wte.weight": (N_TOKENS, D), "wpe.weight": (PLACES, D)}
    for i in range(2):
        shapes |= {f"h.{i}.{n}": shape for n, shape in BLOCK_GPT2.items()}
    shapes |= {"ln_f.weight": (D,), "ln_f.bias": (D,)}
    return drawn(shapes)


def bert_weights() -> dict[str, Tensor]:
    """A BERT of two blocks, in the names and shapes of its file."""
    shapes: dict[str, tuple[int, ...]] = {}
    for table, rows in (
        ("word", N_TOKENS),
        ("position", PLACES),
        ("token_type", 2),
    ):
        shapes[f"embeddings.{table}_embeddings.weight"] = (rows, D)
    norms = ["embeddings.LayerNorm"]
    for i in range(2):
        block = f"encoder.layer.{i}"
        for name, shape in BLOCK_BERT.items():
            shapes[f"{block}.{name}.weight"] = shape
            shapes[f"{block}.{name}.bias"] = shape[:1]
        norms += [f"{block}.{norm}" for norm in NORMS_BERT]
    for norm in norms:
        shapes |= {f"{norm}.weight": (D,), f"{norm}.bias": (D,)}
    return drawn(shapes)


def llama_weights() -> dict[str, Tensor]:
    """A Llama of one block, in the names and shapes of its file."""
    block = "model.layers.0"
    shapes = {f"{block}.self_attn.{x}_proj.weight": (D, D) for x in "qkvo"}
    shapes |= {f"{block}.mlp.{x}_proj.weight": (6, D) for x in ("gate", "up")}
    shapes[f"{block}.mlp.down_proj.weight"] = (D, 6)
    for table in ("model.embed_tokens", "lm_head"):
        shapes[f"{table}.weight"] = (N_TOKENS, D)
    norms = ("input_layernorm", "post_attention_layernorm")
    all_norms = [*(f"{block}.{norm}" for norm in norms), "model.norm"]
    return drawn(shapes | {f"{norm}.weight": (D,) for norm in all_norms})


def t5_weights() -> dict[str, Tensor]:
    """A T5 of one block and one, in the names and shapes of its file."""
    shapes: dict[str, tuple[int, ...]] = {"shared.weight": (N_TOKENS, D)}
    for stack, attentions in (
        ("encoder", ["SelfAttention"]),
        ("decoder", ["SelfAttention", "EncDecAttention"]),
    ):
        block = f"{stack}.block.0.layer"
        for i, name in enumerate([*attentions, "DenseReluDense"]):
            shapes[f"{block}.{i}.layer_norm.weight"] = (D,)
            if i < len(attentions):
                for x in "qkvo":
                    shapes[f"{block}.{i}.{name}.{x}.weight"] = (D, D)
        shapes[f"{block}.{i}.{name}.wi.weight"] = (6, D)
        shapes[f"{block}.{i}.{name}.wo.weight"] = (D, 6)
        table = f"{block}.0.SelfAttention.relative_attention_bias.weight"
        shapes |= {table: (8, 2), f"{stack}.final_layer_norm.weight": (D,)}
    return drawn(shapes)


def vit_weights() -> dict[str, Tensor]:
    """A ViT of one block, in the names and shapes of its file."""
    block = "vit.layers.0"
    shapes = {f"{block}.attention.{x}_proj.weight": (D, D) for x in "qkvo"}
    shapes |= {f"{block}.mlp.fc1.weight": (6, D)}
    shapes |= {f"{block}.mlp.fc2.weight": (D, 6), "classifier.weight": (3, D)}
    norms = [f"{block}.layernorm_{x}" for x in ("before", "after")]
    for norm in [*norms, "vit.layernorm"]:
        shapes[f"{norm}.weight"] = (D,)
    both = {n.replace("weight", "bias"): s[:1] for n, s in shapes.items()}
    embed = "vit.embeddings"
    patches = f"{embed}.patch_embeddings.projection"
    rest = {f"{patches}.weight": (D, 1, 2, 2), f"{patches}.bias": (D,)}
    rest |= {f"{embed}.cls_token": (1, 1, D)}
    rest |= {f"{embed}.position_embeddings": (1, 5, D)}
    return drawn(shapes | both | rest)


def drawn(shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Random numbers in these shapes, always the same."""
    generator = torch.Generator().manual_seed(3)
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float32)
        for name, shape in shapes.items()
    }


@cache
def folder() -> Path:
    """Where files lie, for as long as this process lives."""
    made = tempfile.TemporaryDirectory()
    KEPT.append(made)
    return Path(made.name)


KEPT: list[tempfile.TemporaryDirectory] = []


LAYOUTS = {
    "gpt2": gpt2_weights,
    "bert": bert_weights,
    "llama": llama_weights,
    "t5": t5_weights,
    "vit": vit_weights,
}


@cache
def a_file(model: str) -> Path:
    """A safetensors file of published form."""
    from safetensors.torch import save_file

    path = folder() / f"{model}.safetensors"
    save_file(LAYOUTS[model](), path)
    return path


@cache
def alone() -> None:
    """A world of one rank, for those that ask for a world."""
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1
    )


def leave() -> None:
    """End that world: a process has but one, and others want theirs."""
    if alone.cache_info().currsize:
        dist.destroy_process_group()
    alone.cache_clear()
    mesh_of_one.cache_clear()


@cache
def mesh_of_one():
    """A mesh of that one rank."""
    from torch.distributed.device_mesh import DeviceMesh

    alone()
    return DeviceMesh("cpu", [0])
