"""The lab on cost: its formulas are what the package's functions cost."""

import itertools
import math

import pytest
import torch

from selfattn import (
    MultiHeadAttention,
    fused_attention,
    linear_attention,
    sliding_window_attention,
)
from selfattn.cost import flops, peak_bytes
from selfattn.labs.cost import (
    BYTES,
    GPUS,
    LENGTHS,
    MECHANISMS,
    WINDOW,
    CostLab,
    fits,
    plan,
)
from selfattn.labs.machinery import esm
from selfattn.labs.machinery.settings import SettingError

START = CostLab().values()
OPTIONS = {name: rule["options"] for name, rule in CostLab().rules.items()}


def every_setting():
    for options in itertools.product(*OPTIONS.values()):
        values = dict(zip(OPTIONS, options, strict=True))
        if values["d_model"] % values["n_heads"] == 0:
            yield values


def naive(q, k, v):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    weights = scores.softmax(dim=-1)
    return weights @ v


def windowed(q, k, v, **options):
    return sliding_window_attention(q, k, v, window=WINDOW, **options)


FUNCTIONS = {
    "naive": naive,
    "fused": fused_attention,
    "window": windowed,
    "linear": linear_attention,
}


# --- The formulas, counted --------------------------------------------------


def heads(values):
    shape = values["batch"], values["n_heads"], values["n"]
    d = values["d_model"] // values["n_heads"]
    dtype = getattr(torch, values["dtype"])
    return [torch.zeros(*shape, d, dtype=dtype) for _ in range(3)]


SMALL = START | {"n": 512, "d_model": 256, "n_heads": 4, "batch": 4}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("n", [128, 512, 1024])
def test_the_operations_are_counted(mechanism, n):
    values = SMALL | {"mechanism": mechanism, "n": n, "batch": 1}
    attend, made = FUNCTIONS[mechanism], plan(**values)
    q, k, v = heads(values)
    assert flops(lambda: attend(q, k, v)) == made.mechanism_flops
    if mechanism != "naive":
        layer = MultiHeadAttention(256, 4, attend=attend)
        x = torch.zeros(1, n, 256)
        with torch.no_grad():
            assert flops(lambda: layer(x)) == made.flops
        parameters = sum(p.nbytes for p in layer.parameters())
        assert parameters == made.parameter_bytes
        q, k, v = layer.heads(x)
        tokens = sum(each.nbytes for each in (x, q, k, v))
        assert tokens == made.token_bytes


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("mechanism", ["naive", "fused"])
def test_the_bytes_are_counted_to_the_last(mechanism, dtype):
    values = SMALL | {"mechanism": mechanism, "dtype": dtype}
    # Two bytes are two bytes; and the fused kernel takes float16 everywhere,
    # bfloat16 only where it may use AVX-512 (see conftest.py).
    made_of = "float16" if dtype == "bfloat16" else dtype
    q, k, v = heads(values | {"dtype": made_of})
    peak = peak_bytes(lambda: FUNCTIONS[mechanism](q, k, v))
    assert peak == plan(**values).mechanism_bytes


@pytest.mark.parametrize("mechanism", ["window", "linear"])
def test_what_the_formula_leaves_out_does_not_grow_with_n(mechanism):
    """It is a block of scores or a memory: the same for any length."""
    left_out = set()
    for n in (1024, 2048, 4096):
        values = SMALL | {"mechanism": mechanism, "n": n, "batch": 1}
        q, k, v = heads(values)
        peak = peak_bytes(lambda q=q, k=k, v=v: FUNCTIONS[mechanism](q, k, v))
        left_out.add(peak - plan(**values).mechanism_bytes)
    (constant,) = left_out
    assert 0 < constant < 2 * 2**20


# --- The page ---------------------------------------------------------------


def compare(results, many):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(many, results, strict=True):
        made = plan(**values)
        ours = {
            "projectionFlops": made.projection_flops,
            "mechanismFlops": made.mechanism_flops,
            "parameterBytes": made.parameter_bytes,
            "tokenBytes": made.token_bytes,
            "mechanismBytes": made.mechanism_bytes,
            "flops": made.flops,
            "bytes": made.bytes,
        }
        for name, number in ours.items():
            # Beyond 2**53 float64 rounds; one rounding a step, few steps.
            assert math.isclose(theirs[name], number, rel_tol=1e-14), values
        assert theirs["fits"] == fits(made.bytes)


def test_it_computes_as_the_package_everywhere(in_node, unopened):
    many = list(every_setting())
    assert len(many) == 14_560
    compare(in_node("cost", [["compute", values] for values in many]), many)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("naive: 2 * rows * n * word", "naive: rows * n * word"),
        ("fused: 4 * rows", "fused: word * rows"),
        ("8 * numbers * d_model", "6 * numbers * d_model"),
        ("start + BLOCK + WINDOW", "start + WINDOW"),
        ("(n * d_model) / n_heads", "n * d_model"),
        ("plan.bytes <= gb * 1e9", "plan.bytes <= gb * 2 ** 30"),
        ("bfloat16: 2 }", "bfloat16: 4 }"),
    ],
)
def test_one_wrong_factor_is_seen(planted, right, wrong):
    many = list(every_setting())[::11]
    with pytest.raises(AssertionError):
        compare(planted("cost", right, wrong, many), many)


def test_numbers_are_said_in_short(in_node):
    asked = [1, 999, 1000, 1.5e9, 2.5e18]
    said = in_node("cost", [["writeLink", "cost", CostLab().rules, START]])
    assert said == [""]
    whole = "export default defineLab({ compute, build, sees, tasks })"
    text = esm.module_text("cost").replace(whole, "export default { scaled }")
    said = in_node("cost", [["scaled", x, "B"] for x in asked], text)
    assert said == ["1.00 B", "999 B", "1.00 kB", "1.50 GB", "2.50 EB"]


# --- Settings ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("n=4096&mechanism=fused", {"n": 4096, "mechanism": "fused"}, ""),
        ("n=4097", {}, "n must be one of 128, 256"),
        ("dtype=float16", {}, "dtype must be one of float32, bfloat16"),
        ("colour=red", {}, "no setting “colour”"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(CostLab(), link, changed, complaint)


def test_the_repr_is_the_call_that_makes_it():
    some = CostLab(n=4096, mechanism="linear")
    assert eval(repr(some)).values() == some.values()


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(SettingError, match="n_heads must divide d_model"):
        CostLab(d_model=256, n_heads=12)
    lab = CostLab()
    lab.d_model = 256
    assert lab.n_heads == 8


def test_the_picture_holds_the_numbers():
    lab = CostLab(n=16384)
    (ax,) = lab.figure().axes
    naive_line, *_ = ax.lines
    assert naive_line.get_xdata().tolist() == LENGTHS
    place = LENGTHS.index(16384)
    assert naive_line.get_ydata()[place] == lab.plan().bytes
    levels = [line.get_ydata()[0] for line in ax.lines[-len(GPUS) :]]
    assert levels == [gb * 10**9 for gb in GPUS.values()]
    assert "fit on" in lab.describe()
    assert f"{lab.plan().bytes:.3g} bytes" in lab.describe()
