"""What lies beside the weights: models that only their config tells apart."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from selfattn.models import load_bert, load_gpt2, load_llama

D = 8
LINEAR = {"rope_type": "linear", "factor": 2.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "rope_theta": 5e5}
OLD = {"type": "dynamic", "factor": 2.0}


def llama(path, config=None):
    block = "model.layers.0."
    sizes = {
        "model.embed_tokens": (11, D),
        "model.norm": (D,),
        f"{block}input_layernorm": (D,),
        f"{block}post_attention_layernorm": (D,),
        f"{block}mlp.gate_proj": (12, D),
        f"{block}mlp.up_proj": (12, D),
        f"{block}mlp.down_proj": (D, 12),
        **{f"{block}self_attn.{i}_proj": (D, D) for i in "qkvo"},
    }
    weights = {f"{n}.weight": torch.randn(s) for n, s in sizes.items()}
    save_file(weights, path / "model.safetensors")
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    return load_llama(path / "model.safetensors", n_heads=2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rope_scaling", LINEAR),
        ("rope_scaling", OLD),
        ("rope_parameters", LLAMA3),
        ("model_type", "gemma"),
    ],
)
def test_a_model_that_reckons_otherwise_is_refused_by_its_field(
    tmp_path, field, value
):
    with pytest.raises(ValueError, match=rf"says {field}="):
        llama(tmp_path, {"model_type": "llama", field: value})


def test_a_config_that_tells_of_ours_changes_nothing(tmp_path):
    plain = {"rope_type": "default", "rope_theta": 1e4}
    told = {"model_type": "llama", "rope_parameters": plain}
    torch.manual_seed(0)
    alone = llama(tmp_path)
    torch.manual_seed(0)
    beside = llama(tmp_path, told | {"rope_scaling": None})
    tokens = torch.arange(5)[None]
    assert_close(alone(tokens), beside(tokens))


@pytest.mark.parametrize(
    ("load", "config"),
    [
        (load_bert, {"model_type": "roberta"}),
        (load_bert, {"model_type": "bert", "is_decoder": True}),
        (load_gpt2, {"model_type": "gpt2", "activation_function": "relu"}),
    ],
)
def test_others_of_the_same_names_are_refused(tmp_path, load, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"says {list(config)[-1]}="):
        load(tmp_path / "model.safetensors")
