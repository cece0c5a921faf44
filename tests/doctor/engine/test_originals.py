"""Whose import replaces PyTorch's functions is not compared with itself."""

import pytest
import torch
from torch import nn

from selfattn.doctor.__main__ import main
from selfattn.doctor.engine.originals import known, replaced

RIGHT = """
import torch, torch.nn.functional as F
def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""
OFF_BY_ONE = """
def softmax1(x, dim=-1, **others):
    e = x.exp()
    return e / (1 + e.sum(dim, keepdim=True))
"""
REPLACED = {
    "torch.Tensor.softmax": f"{OFF_BY_ONE}torch.Tensor.softmax = softmax1",
    "torch.nn.functional.softmax": f"{OFF_BY_ONE}F.softmax = softmax1",
    "torch.allclose": "torch.allclose = lambda *a, **k: True",
    "torch.Tensor.__matmul__": "torch.Tensor.__matmul__ = torch.Tensor.mul",
    "torch.nn.functional.layer_norm": "F.layer_norm = F.rms_norm",
    "torch.nn.functional.multi_head_attention_forward": (
        "F.multi_head_attention_forward = print"
    ),
}
HARMLESS = {
    "a new name": "torch.softmax1 = torch.Tensor.near = print",
    "the same": "torch.softmax = torch.softmax",
    "what we do not use": "torch.load = torch.hub.load = print",
    "the compiler": "import torch._dynamo",
}


@pytest.fixture
def told(tmp_path, capfd):
    """The code and the words of the command on some lines."""

    def run(lines, *more):
        path = tmp_path / "mine.py"
        path.write_text(f"{RIGHT}{lines}\n", "utf-8")
        code = main([f"{path}:attention", *more])
        return code, " ".join(capfd.readouterr().out.split())

    return run


@pytest.mark.parametrize("kind", [(), ("--kind", "attention")], ids=len)
@pytest.mark.parametrize("name", REPLACED)
def test_an_import_that_replaces_what_we_use_is_no_diagnosis(name, kind, told):
    """A softmax off by one was healthy: so was ours, since its import."""
    code, words = told(REPLACED[name], *kind)
    assert code == 2, words
    assert f"its code replaces {name}" in words and "healthy" not in words


def test_all_of_a_file_is_refused_at_once(tmp_path, capfd):
    path = tmp_path / "mine.py"
    lines = f"{RIGHT}{OFF_BY_ONE}torch.equal = F.softmax = softmax1\n"
    path.write_text(lines, "utf-8")
    assert main([str(path)]) == 2
    words = " ".join(capfd.readouterr().out.split())
    assert words.count("no diagnosis") == 1
    assert "replaces torch.nn.functional.softmax, torch.equal, and" in words


def test_what_replaces_them_as_it_is_called_is_no_diagnosis(told):
    code, words = told(
        "def attention(q, k, v):\n    torch.allclose = print\n    return v",
        *("--kind", "attention"),
    )
    assert code == 2 and "its code replaces torch.allclose" in words


def test_what_is_put_back_in_a_call_was_replaced_before(told):
    code, words = told(
        "theirs, torch.equal = torch.equal, print\n"
        "def attention(q, k, v):\n"
        "    torch.equal = theirs\n"
        "    return F.scaled_dot_product_attention(q, k, v)",
        *("--kind", "attention"),
    )
    assert code == 2 and "its code replaces torch.equal" in words


@pytest.mark.parametrize("name", HARMLESS)
def test_an_import_that_changes_nothing_of_ours_is_healthy(name, told):
    code, words = told(HARMLESS[name], "--kind", "attention")
    assert code == 0, words


def test_of_many_names_some_are_told(monkeypatch):
    before = known()
    assert replaced(before) == ""
    for name in ("Linear", "LayerNorm", "Module", "Embedding", "Dropout"):
        monkeypatch.setattr(nn, name, print)
    assert "torch.nn.Linear" in replaced(before)
    assert "and others" in replaced(before)
    monkeypatch.undo()
    assert replaced(before) == ""


def test_a_method_found_further_up_is_known(monkeypatch):
    """`Tensor` has most of its methods from a class that it is made of."""
    before = known()
    monkeypatch.setattr(torch.Tensor, "exp", torch.Tensor.sin, raising=False)
    assert "torch.Tensor.exp" in replaced(before)
