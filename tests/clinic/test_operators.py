"""Operators find their places in code of any style, and plant one mistake."""

import ast
import inspect

import pytest
import torch.nn.modules.activation
import torch.nn.modules.transformer

from tools.measure.clinic.examining import NAMES
from tools.measure.clinic.operators import (
    every,
    in_scope,
    mutants,
    replaced,
)
from tools.measure.clinic.operators.syntax import is_method, operand
from tools.measure.clinic.patients import Style, styles

STYLES = [(s, ast.parse(s.text)) for s in styles()]
NAMED = ast.Name | ast.Attribute


def planted_somewhere(operator):
    """Whether it changes a text of any style."""
    for style, tree in STYLES:
        if operator.kinds is not None and style.kind not in operator.kinds:
            continue
        for node in in_scope(tree, style.kind):
            for text in operator.find(node):
                made = replaced(tree, node, text)
                if made not in (None, ast.unparse(tree)):
                    return True
    return False


def test_there_are_forty_operators_at_least():
    names = [operator.name for operator in every()]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize("operator", every(), ids=lambda one: one.name)
def test_each_operator_finds_a_place(operator):
    assert planted_somewhere(operator)


STRANGE = """
def f(x, *, memory=None):
    \"\"\"Its einsum is bqd,bkd->bqk -> and then bqk->bkq.\"\"\"
    self.cross_attn(x=x, memory=memory)
    unsqueeze(unsqueeze(x, 0), 1)
    return
"""
WRITTEN = (torch.nn.modules.activation, torch.nn.modules.transformer)
STRANGERS = [STRANGE, *(inspect.getsource(module) for module in WRITTEN)]


def told_otherwise(call):
    """A call with no arguments, with all by names, and as a method."""
    func = ast.unparse(call.func)
    yield f"{func}()"
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(isinstance(argument, ast.Starred) for argument in given):
        return
    named = [f"a{i}={ast.unparse(x)}" for i, x in enumerate(given)]
    yield f"{func}({', '.join(named)})"
    if call.args:
        x, *rest = map(ast.unparse, call.args)
        yield f"({x}).{func.rpartition('.')[-1]}({', '.join(rest)})"


STRANGE_CALLS = {
    text
    for _, tree in STYLES
    for call in ast.walk(tree)
    if isinstance(call, ast.Call) and isinstance(call.func, NAMED)
    for text in told_otherwise(call)
}
STRANGE_NODES = [
    *(node for text in STRANGERS for node in ast.walk(ast.parse(text))),
    *(ast.parse(text, mode="eval").body for text in sorted(STRANGE_CALLS)),
]


@pytest.mark.parametrize("operator", every(), ids=lambda one: one.name)
def test_no_operator_falls_over_code_that_nobody_wrote_for_it(operator):
    """Some did: of a bare return, a docstring, named arguments alone, and of
    x.relu(), which has its tensor before the dot.
    """
    for node in STRANGE_NODES:
        for made in operator.find(node):
            assert isinstance(made, str)


@pytest.mark.parametrize("operator", every(), ids=lambda one: one.name)
def test_each_operator_has_names_that_are_right(operator):
    assert operator.name in NAMES


def test_no_name_is_for_an_operator_that_there_is_not():
    assert NAMES.keys() <= {operator.name for operator in every()}


def made_of(text, kind="attention"):
    """What operators make of a text, by their names."""
    found = {}
    for mutant in mutants(Style(kind, "here", text)):
        found.setdefault(mutant.operator, []).append(mutant.text)
    return found


def test_one_mistake_has_its_place_in_every_style():
    ways = {
        "scores = q @ k.mT / math.sqrt(d)": "scores = q @ k.mT",
        "scores = q * d ** -0.5 @ k.mT": "scores = q @ k.mT",
        "attn = torch.bmm(q, k.mT).div(math.sqrt(d))": (
            "attn = torch.bmm(q, k.mT)"
        ),
    }
    for was, becomes in ways.items():
        assert becomes in made_of(was)["scale left out"]


def test_what_is_cut_in_three_has_no_every_nth_feature():
    """It was taken for heads and features, and no mistake was drawn."""
    cut = "x = y.unflatten(-1, (heads, 3, -1))"
    assert "split every nth" not in made_of(cut)
    assert "split every nth" in made_of("x = y.unflatten(-1, (heads, -1))")


@pytest.mark.parametrize(
    "told", ["g, dim=1", "dim=1, repeats=g", "repeats=g, dim=1", "g, 1"]
)
def test_what_is_repeated_may_be_told_by_name_or_by_place(told):
    """One that told both by name ended the whole clinic."""
    made = made_of(f"k = torch.repeat_interleave(k, {told})")
    assert made["repeated in the other order"] == [
        "k = torch.cat([k] * g, dim=1)"
    ]


def test_what_is_split_may_be_told_by_name():
    """So would this one have, had there been one."""
    made = made_of("x = x.unflatten(dim=-1, sizes=(h, -1))")
    assert made["split every nth"] == ["x = x.unflatten(-1, (-1, h)).mT"]


def test_a_tile_may_be_filled_by_names():
    text = "s = s.masked_fill(mask=outside, value=-inf)"
    assert made_of(text, "efficient")["edges not hidden"] == ["s = s"]


def test_a_statement_may_move():
    function = """
def attend(s, mask):
    s = s.masked_fill(mask, float('-inf'))
    w = torch.softmax(s, dim=-1)
    return w
"""
    (moved,) = made_of(function)["mask after softmax"]
    lines = [line.strip() for line in moved.splitlines()]
    assert lines[1:3] == [
        "w = torch.softmax(s, dim=-1)",
        "w = w.masked_fill(mask, 0.0)",
    ]


def test_what_is_said_of_a_patient_is_left_alone():
    assert made_of("PATIENT = layer(x / math.sqrt(2))") == {}


def test_of_a_block_the_parts_are_left_alone():
    text = """
class Attention(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

class Block(nn.Module):
    def forward(self, x):
        return x + self.attention(x)
"""
    found = made_of(text, "encoder-block")
    assert "residual left out" in found
    assert "softmax left out" not in found


def test_a_sum_in_what_a_part_is_made_of_is_no_path():
    """Parts were made too narrow, and what was planted never ran."""
    text = """
class Block(nn.Module):
    def __init__(self, inner, wide):
        super().__init__()
        self.out = nn.Linear(2 * inner + wide, inner)

    def forward(self, x):
        return x + self.out(x)
"""
    (made,) = made_of(text, "encoder-block")["residual left out"]
    assert "nn.Linear(2 * inner + wide, inner)" in made
    assert "return self.out(x)" in made


@pytest.mark.parametrize("eps", ["eps", "self.eps", "m.variance_epsilon"])
def test_eps_is_called_in_many_ways(eps):
    """A name that nobody had given was put outside of the root."""
    text = f"y = x * torch.rsqrt(power + {eps})"
    made = made_of(text, "rms-norm")
    assert made["eps outside the root"] == [
        f"y = x * (1 / (power.sqrt() + {eps}))"
    ]
    assert made["eps left out"] == ["y = x * torch.rsqrt(power)"]


def test_a_tree_is_as_it_was_after_a_mistake():
    tree = ast.parse("y = a + b")
    node = tree.body[0].value
    assert replaced(tree, node, "a") == "y = a"
    assert ast.unparse(tree) == "y = a + b"


ENOUGH = 40  # patients of a kind, evenly of all


@pytest.mark.parametrize("kind", sorted({s.kind for s, _ in STYLES}))
def test_what_is_planted_may_be_planted_in_again(kind):
    """After 1,896 visits a padding mask with <= ended the whole clinic.

    So would a name that was made a sum where something is put into it.
    """
    firsts = [
        (style, first)
        for style, _ in STYLES
        if style.kind == kind
        for first in mutants(style)
    ]
    step = 1 if "mask" in kind else max(1, len(firsts) // ENOUGH)
    again = [
        second
        for style, first in firsts[::step]
        for second in mutants(style._replace(text=first.text))
    ]
    assert again


@pytest.mark.parametrize(
    "place", ["F", "nn.functional", "torch.nn.functional"]
)
def test_a_function_of_a_module_is_no_method_of_it(place):
    """Code was planted that asked a module for its float32 copy."""
    call = ast.parse(f"{place}.softmax(x[0], dim=-1)", mode="eval").body
    assert not is_method(call) and operand(call) == "x[0]"
    method = ast.parse("torch.tanh(x).softmax(-1)", mode="eval").body
    assert is_method(method) and operand(method) == "torch.tanh(x)"
