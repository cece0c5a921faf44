"""A file at the door: each thing is guessed, said and examined."""

import json

import pytest

from selfattn.doctor.__main__ import main
from selfattn.doctor.command.visiting import part_of
from selfattn.doctor.door.guessing import Guess

FILE = """
import torch
from torch import nn


def halves(x):
    return x.chunk(2, dim=-1)


def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-2) @ v


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, d = x.shape
        split = b, n, self.heads, d // self.heads
        parts = [p.view(split) for p in self.qkv(x).chunk(3, -1)]
        q, k, v = (p.transpose(1, 2) for p in parts)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        output = scores.softmax(-1) @ v
        return self.out(output.transpose(1, 2).reshape(b, n, d))
"""


@pytest.fixture
def told(tmp_path, capsys):
    """What the command says of some lines: its code, its words."""

    def run(lines, *more, inside=""):
        path = tmp_path / "mine.py"
        path.write_text(lines, "utf-8")
        code = main([f"{path}{inside}", *more])
        out = capsys.readouterr()
        assert "Traceback" not in out.out + out.err
        return code, out.out

    return run


def test_a_file_alone_is_enough(told):
    code, out = told(FILE)
    halves, attend, attention = out.split("\n\n")[:3]
    assert code == 1  # one of them is ill
    assert halves.startswith("halves is left out: ")
    assert attend.startswith("attend looks like attention: it takes q, k ")
    assert "\n✗ attend (attention): softmax over queries\n" in attend
    assert attention.startswith("Attention looks like self-attention: ")
    assert "\n✓ Attention (self-attention): healthy, on " in attention


def test_one_thing_needs_no_kind(told):
    code, out = told(FILE, inside=":Attention")
    assert code == 0
    assert out.startswith("Attention looks like self-attention: what a ")


@pytest.mark.parametrize(
    ("inside", "wrong", "right"),
    [
        (":attend", "softmax", "✗ attend (attention): softmax over queries"),
        (":attend", "self-attention", "✗ attend (attention): softmax over "),
        (":Attention", "attention", "✓ Attention (self-attention): healthy"),
        (":Attention", "encoder-block", "✓ Attention (self-attention): "),
    ],
)
def test_a_wrong_kind_is_answered_by_the_right_one(inside, wrong, right, told):
    _, out = told(FILE, "--kind", wrong, inside=inside)
    assert out.startswith(f"You said {wrong}, but {inside[1:]} looks like ")
    assert f"\n{right}" in out


def test_a_right_kind_is_taken_as_it_is_told(told):
    _, out = told(FILE, "--kind", "attention", inside=":attend")
    assert out.startswith("✗ attend (attention): softmax over queries")


def test_a_kind_told_of_a_file_is_tried_on_what_is_in_it(told):
    code, out = told(FILE, "--kind", "attention")
    assert code == 1 and "\n✗ attend (attention): softmax over" in out
    assert "You said attention, but Attention looks like self-att" in out


def test_facts_are_passed_on(told):
    lines = "def look(a, b, c):\n    return (a @ b.mT).softmax(-1) @ c\n"
    code, out = told(lines)
    assert code != 0
    code, out = told(lines, "--scale", "1.0", "--layout", "any")
    assert code == 0 and "✓ look (attention): healthy" in out


def test_a_file_as_json_is_a_list(told):
    code, out = told(FILE, "--json")
    halves, attend, attention = json.loads(out)
    assert code == 1 and halves.keys() == {"guess"}
    assert attend["mistake"]["name"] == "softmax over queries"
    assert attention["healthy"] and attention["kind"] == "self-attention"
    assert attention["guess"].startswith("Attention looks like self-att")


def test_one_thing_as_json_is_what_it_was(told):
    code, out = told(FILE, "--json", inside=":Attention")
    assert code == 0 and json.loads(out)["healthy"]


# Of the file nothing was told, and of "fast", that it looks like nothing.
SCRIPTED = """
import torch
import warnings

def _attend(q, k, v):
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v

with warnings.catch_warnings(action="ignore"):
    fast = torch.jit.script(_attend)
"""
OTHERS = SCRIPTED.replace("fast = ", "_attend.__module__ = 'other'; fast = ")


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        ("1 / 0", 2, "It raises ZeroDivisionError: division by zero while"),
        ("import torch", 2, "mine.py can be examined."),
        ("def f(x): return x", 2, "f is left out: it looks like nothing"),
        (SCRIPTED, 2, "fast is left out: torch.jit compiled it, and"),
        (f"from os.path import *\n{OTHERS}", 2, "mine.py can be examined."),
    ],
)
def test_a_file_without_patients_is_no_success(lines, code, words, told):
    found, out = told(lines)
    assert found == code and words in " ".join(out.split())


PARTS = """
from torch import nn


def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)

    def forward(self, x):
        return attend(self.q_proj(x), self.k_proj(x), self.v_proj(x))
"""


def test_a_part_of_what_is_healthy_is_left_out(told):
    code, out = told(PARTS)
    assert code == 0 and "✓ Layer (self-attention): healthy" in out
    assert "attend is left out: Layer, which is healthy, uses it.\n" in out


def test_two_that_use_a_part_are_more_than_one():
    said = part_of(Guess("attend", used_by=("Layer", "Net")))
    assert said.endswith("Layer and Net, which are healthy, use it.")


def test_a_part_of_what_is_ill_is_examined(told):
    code, out = told(PARTS.replace("softmax(-1)", "softmax(-2)"))
    assert code == 1 and "✗ attend (attention): softmax over queries" in out
    assert "✗ Layer (self-attention): softmax over queries" in out


def test_a_part_is_examined_if_the_whole_was_asked_for_no_numbers(told):
    """Of projections that it does not recognise it asks properties alone."""
    lines = PARTS.replace("_proj(x)", "(x)").replace("_proj", "")
    lines = lines.replace("softmax(-1)", "softmax(-2)")
    lines = lines.replace("self.q", "self.a").replace("self.k", "self.b")
    lines = lines.replace("self.v", "self.c")
    code, out = told(lines)
    assert code == 1 and "✗ attend (attention): softmax over queries" in out


LOOKS = """
def attention(query, key, value, window=None):
    n, m = query.shape[-2], key.shape[-2]
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return 3 * weights @ value + 0.1
"""


def test_who_saves_no_work_is_not_held_to_that(told):
    """`the whole table is made` was said of plain attention."""
    _, out = told(LOOKS)
    assert "whole table" not in out


def test_a_file_that_is_not_there_is_named(capsys):
    assert main(["nowhere.py"]) == 2
    assert "There is no file nowhere.py" in capsys.readouterr().err


DECODER = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x, past=None):
        b, t, w = x.shape
        made = self.qkv(self.norm(x)).view(b, t, 3, self.heads, -1)
        q, k, v = torch.einsum("btche->cbhte", made)
        if past is not None:
            k = torch.cat((past[0], k), dim=2)
            v = torch.cat((past[1], v), dim=2)
        n = k.shape[2]
        scores = torch.einsum("bhie,bhje->bhij", q, k) / q.shape[-1] ** 0.5
        later = torch.ones(n, n, dtype=torch.bool).triu(1)[n - t :]
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        read = torch.einsum("bhij,bhje->bihe", weights, v)
        return x + self.proj(read.reshape(b, t, w)), (k, v)


class LanguageModel(nn.Module):
    def __init__(self, vocab, width, heads, depth, longest):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.places = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(
            Layer(width, heads) for _ in range(depth)
        )

    def forward(self, ids, cache=None):
        old = 0 if cache is None else cache[0][0].shape[2]
        x = self.words(ids) + self.places.weight[old : old + ids.shape[1]]
        kept = []
        for i, layer in enumerate(self.layers):
            x, pair = layer(x, None if cache is None else cache[i])
            kept.append(pair)
        return x @ self.words.weight.T, kept
"""


def test_a_decoder_is_made_before_it_is_called(told):
    """Two strangers' sound ones were called ill: their classes were called."""
    code, out = told(DECODER)
    assert code == 0
    assert "✓ Layer (cached-decoder): healthy, on 9 probes" in out
    assert "✓ LanguageModel (language-model): healthy, on 12 probes" in out
    again = "self.places.weight[: ids.shape[1]]"
    wrong = DECODER.replace(
        "self.places.weight[old : old + ids.shape[1]]", again
    )
    code, out = told(wrong, inside=":LanguageModel")
    assert code == 1 and "positions start again" in out


GPT = """
import torch
from torch import nn


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, block_size=16):
        super().__init__()
        self.words = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(block_size, width)
        self.heads = nn.MultiheadAttention(width, heads, batch_first=True)
        self.out = nn.Linear(width, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(n))
        return self.out(x + self.heads(x, x, x)[0])
"""


def test_a_whole_model_that_forgot_its_mask_needs_no_kind(told):
    code, out = told(GPT)
    assert code == 1
    assert out.startswith("GPT looks like language-model: it takes the numb")
    assert "\n✗ GPT (language-model): not causal\n" in out


NORMS = """
import torch
from torch import nn


class {name}(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x / x.std(dim=-1, keepdim=True) * self.gain


class LayerNormOfDays(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return x.cumsum(dim=-1) * self.gain + self.shift
"""


def test_what_nobody_called_a_norm_is_asked_whether_it_is_one(told):
    """Another kind of norm was called a wrong one of ours."""
    code, out = told(NORMS.format(name="SimpleNorm"))
    out = " ".join(out.split())
    assert code == 3 and out.count("If it is to be one, say --kind") == 2
    assert "its name says nothing" in out and "has the name of one" in out
    code, out = told(NORMS.format(name="RMSNorm"))
    assert code == 1 and "divided by the deviation" in out


SLOW = (
    FILE
    + """

def slow(layer, x):
    parts = layer.qkv(x).chunk(3, -1)
    heads = []
    for q, k, v in zip(*(p.chunk(layer.heads, -1) for p in parts)):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        heads.append(scores.softmax(-1) @ v)
    return layer.out(torch.cat(heads, -1) / 2)


layer = Attention(12, 3)
"""
)


def test_a_formula_is_told_by_where_it_stands(told, tmp_path):
    kind = ["--kind", "self-attention"]
    formula = f"--formula={tmp_path / 'mine.py'}"
    code, out = told(SLOW, *kind, f"{formula}:slow", inside=":layer")
    assert code == 1 and "your formula" in out
    right = SLOW.replace(" / 2)\n\n\nlayer", ")\n\n\nlayer")
    assert told(right, *kind, f"{formula}:slow", inside=":layer")[0] == 0
    code, out = told(right, *kind, f"{formula}:sloow", inside=":layer")
    assert code == 2 and "There is no 'sloow'" in out
