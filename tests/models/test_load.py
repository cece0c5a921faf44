"""Files of weights that are cut short, changed or ambiguous are named."""

import shutil

import pytest
import torch
from hostile.of_keeping import stirred
from hostile.recipes import MODULES
from hostile.scenes import a_file, bert_weights, gpt2_weights
from safetensors.torch import load_model, save_file, save_model
from torch.testing import assert_close

from selfattn.models import load_bert, load_gpt2

BOTH = [("gpt2", load_gpt2, gpt2_weights), ("bert", load_bert, bert_weights)]
each = pytest.mark.parametrize(
    ("name", "load", "weights"), BOTH, ids=["gpt2", "bert"]
)


def answer(model):
    """What a loaded model makes of some tokens."""
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    return model(tokens) if hasattr(model, "head") else model.encoder(tokens)


@each
def test_a_model_keeps_its_weights_when_the_file_is_overwritten(
    name, load, weights, tmp_path
):
    """They were views of the file: zeros in it were zeros in the model, and
    a file cut short was a bus error."""
    path = tmp_path / "model.safetensors"
    shutil.copy(a_file(name), path)
    model = load(path, n_heads=2)
    before = answer(model)
    with path.open("r+b") as file:
        file.seek(2000)
        file.write(b"\0" * 4000)
    assert torch.equal(answer(model), before)
    with path.open("r+b") as file:
        file.truncate(100)
    assert torch.equal(answer(model), before)


@each
@pytest.mark.parametrize("size", [0, 7, 100, 3000, -1])
def test_a_file_cut_short_is_named(name, load, weights, size, tmp_path):
    path = tmp_path / "half.safetensors"
    path.write_bytes(a_file(name).read_bytes()[:size])
    with pytest.raises(ValueError, match=r"but .*half.safetensors cannot be"):
        load(path, n_heads=2)


@each
def test_a_file_that_is_not_there_is_named(name, load, weights, tmp_path):
    for path in (tmp_path, tmp_path / "nowhere.safetensors"):
        with pytest.raises(ValueError, match=f"but {path} cannot be read"):
            load(path, n_heads=2)


@each
def test_a_file_that_the_disk_refuses_is_named(
    name, load, weights, tmp_path, monkeypatch
):
    path = tmp_path / "weights.safetensors"
    save_file(weights(), path)

    def broken(*given, **named):
        raise OSError("the disk is gone")

    monkeypatch.setattr("safetensors.safe_open", broken)
    with pytest.raises(
        ValueError, match=r"weights\.safetensors.*disk is gone"
    ):
        load(path, n_heads=2)


@each
def test_two_that_differ_for_one_weight_are_refused(
    name, load, weights, tmp_path
):
    """The last of them won, whichever that was."""
    whole = weights()
    first = next(iter(whole))
    prefix = {"gpt2": "transformer.", "bert": "bert."}[name]
    path = tmp_path / "twice.safetensors"
    save_file({**whole, prefix + first: whole[first].clone()}, path)
    assert load(path, n_heads=2) is not None  # one and the same, twice
    save_file({**whole, prefix + first: whole[first] + 1}, path)
    with pytest.raises(ValueError, match=r"hold each weight once.*twice\.saf"):
        load(path, n_heads=2)


@each
def test_weights_of_other_types_are_refused(name, load, weights, tmp_path):
    path = tmp_path / "types.safetensors"
    whole = weights()
    first = next(iter(whole))
    for dtype in (torch.int64, torch.float16):
        save_file({**whole, first: whole[first].to(dtype)}, path)
        with pytest.raises(ValueError, match=r"of one type, but .*types\.saf"):
            load(path, n_heads=2)


@each
def test_a_weight_with_too_few_axes_is_refused(name, load, weights, tmp_path):
    """A row where a table belongs: Python's own error about unpacking."""
    path = tmp_path / "row.safetensors"
    whole = weights()
    for weight in whole:
        save_file({**whole, weight: whole[weight].flatten()[:1]}, path)
        with pytest.raises(ValueError, match=r"row\.safetensors has"):
            load(path, n_heads=2)


@each
def test_a_loaded_model_can_be_saved_and_loaded_again(
    name, load, weights, tmp_path
):
    """GPT-2's three matrices lay across in memory, and safetensors refused."""
    model = load(a_file(name), n_heads=2)
    path = str(tmp_path / "again.safetensors")
    save_model(model, path)
    other = load(a_file(name), n_heads=2)
    with torch.no_grad():
        for weight in other.parameters():
            weight += 1
    load_model(other, path)
    assert_close(answer(other), answer(model))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_saved_and_loaded_again(name, tmp_path):
    """Weights that are shared, or lie in another order, are no trouble."""
    module = MODULES[name]()
    other = stirred(module)
    save_model(module, str(tmp_path / "weights"))
    load_model(other, tmp_path / "weights")
    for key, weight in module.state_dict().items():
        assert torch.equal(other.state_dict()[key], weight)
