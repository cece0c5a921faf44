"""What strangers found around the mechanisms: counters, probes, data, ranks.

As in `test_strangers`, each is a single story: a wrong answer, nonsense that
was taken, or an obscure error.
"""

import importlib
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.modules.module import _global_forward_pre_hooks
from torch.testing import assert_close

from selfattn.blocks import EncoderBlock
from selfattn.cost import (
    LiveBytes,
    allocated_bytes,
    flops,
    most_held,
    parts_of,
    peak_bytes,
    seconds,
)
from selfattn.data import relations, sentiment, sequences, two_lookups
from selfattn.devices.heads import check_heads
from selfattn.doctor import check
from selfattn.doctor.__main__ import main
from selfattn.doctor.door.guessing import guess
from selfattn.doctor.engine.naming import near
from selfattn.doctor.exercise import described
from selfattn.doctor.exercises import find
from selfattn.looking_inside import (
    Probe,
    change_heads,
    fewest_keys,
    not_finite,
    spread,
)
from selfattn.models import Decoder, Embedding, Encoder
from selfattn.models.generate import complete, greedy
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, Translator
from selfattn.origins.paths import hops, sequential_steps


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


class Silent:
    """It answers nobody, not even who it is."""

    def __repr__(self):
        raise RuntimeError

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, q, k):
        return q @ k.mT


# Counters


def without_gradients(f):
    def done():
        with torch.no_grad():
            f()

    return done


def test_a_product_with_a_vector_is_one():
    """PyTorch's counter knows none of these, and said 0."""
    x, v = torch.randn(7, 11), torch.randn(11)
    for f, wanted in (
        (lambda: x @ v, 2 * 7 * 11),
        (lambda: v @ x.mT, 2 * 7 * 11),
        (lambda: v @ v, 2 * 11),
        (lambda: torch.vdot(v, v), 2 * 11),
        (lambda: torch.addmv(torch.zeros(7), x, v), 2 * 7 * 11),
        (lambda: torch.randn(2, 7, 11) @ v, 2 * 2 * 7 * 11),
    ):
        assert flops(f) == wanted


@pytest.mark.parametrize("both_ways", [False, True])
def test_an_lstm_multiplies(both_ways):
    """On the CPU it is one kernel, of which nothing was counted."""
    layer = nn.LSTM(11, 3, bidirectional=both_ways)
    x = torch.randn(7, 2, 11)
    forward = (1 + both_ways) * 2 * 7 * 2 * (11 * 12 + 3 * 12)
    assert flops(lambda: layer(x)) == forward
    x.requires_grad_()
    assert flops(lambda: layer(x)[0].sum().backward()) == 3 * forward


@pytest.mark.parametrize("causal", [False, True])
def test_pytorchs_fast_path_multiplies_as_the_slow_one_does(causal):
    x = torch.randn(2, 7, 12)
    block = nn.TransformerEncoderLayer(12, 2, 24, batch_first=True).eval()
    layer = nn.MultiheadAttention(12, 2, batch_first=True).eval()
    for f in (
        lambda: block(x, is_causal=False),
        lambda: layer(x, x, x, need_weights=causal),
    ):
        assert flops(without_gradients(f)) == flops(f) > 0


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_a_sparse_tensor_has_bytes():
    eye = torch.eye(3)
    assert peak_bytes(eye.to_sparse) >= 3 * (4 + 16)
    assert peak_bytes(eye.to_sparse_csr) >= 3 * (4 + 8) + 4 * 8
    with LiveBytes() as memory:
        made = eye.to_sparse()
        assert memory.live == 3 * (4 + 16)
        del made
    assert memory.live == 0


def test_what_no_bytes_can_be_counted_of_is_named():
    of_one_dnn = SimpleNamespace(layout=torch._mkldnn)
    with pytest.raises(ValueError, match="dense or sparse"):
        parts_of(of_one_dnn)


def test_two_profilers_at_once_are_refused():
    """The inner one waited for ever; around it, PyTorch's saw no more."""
    x = torch.zeros(7, 11)
    with pytest.raises(ValueError, match="one profiler can watch at a time"):
        allocated_bytes(lambda: allocated_bytes(x.exp))
    with torch.autograd.profiler.profile() as theirs:
        with pytest.raises(ValueError, match="one profiler"):
            allocated_bytes(x.exp)
        x.sin()
    assert any(event.name == "aten::sin" for event in theirs.function_events)
    assert allocated_bytes(x.exp) == 4 * 7 * 11


def test_who_only_gives_back_held_no_less_than_nothing():
    assert most_held([(1, -5), (2, 3)]) == 0
    for bad in ([(1, "a")], [("a", 1)], [(1, math.nan)], [(True, True)]):
        with pytest.raises(TypeError, match="two whole numbers"):
            most_held(bad)


@pytest.mark.parametrize("told", [None, "now", math.nan, (0, 1)])
def test_a_clock_tells_a_number(told):
    with pytest.raises(TypeError, match="clock must tell seconds"):
        seconds(lambda: None, clock=lambda: told)


def test_a_long_way_is_counted_at_once():
    """A hop at a time, 10¹² of them took hours."""
    assert hops("convolution", 10**12) == 10**12 // 2
    assert sequential_steps("convolution", 10**12, kernel=2) == 10**12 - 1
    near = [hops("convolution", d, kernel=4) for d in range(8)]
    assert near == [1, 1, 1, 1, 2, 2, 2, 3]
    assert hops("convolution", 0, kernel=1) == 1


# Looking inside


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e13, 1e300])
def test_weights_add_up_to_one_however_large_the_values(size):
    """Beside such values, the sum was taken for zero, and left."""
    weights = torch.full((6,), 1 / 6, dtype=torch.float64)
    values = size * torch.randn(6, 2).double()
    fewer = fewest_keys(weights, values)
    assert (fewer > 0).sum() <= 3
    assert_close(fewer.sum(), weights.sum())
    assert_close(fewer @ values / size, weights @ values / size)


def test_one_feature_is_kept_beside_another_that_is_larger():
    weights = torch.full((6,), 1 / 6, dtype=torch.float64)
    values = torch.randn(6, 2).double() * torch.tensor([1e-14, 1.0])
    found = fewest_keys(weights, values) @ values
    assert_close(found, weights @ values, atol=1e-28, rtol=1e-9)


def test_more_keys_than_float16_can_count():
    n = 70_000
    found = spread(torch.full((1, n), 1 / n, dtype=torch.float16))
    assert found.dtype == torch.float16
    assert_close(found.float(), torch.ones(1), atol=2e-3, rtol=0)


def test_numbers_of_one_byte_are_looked_at_too():
    wide = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    found = not_finite({"x": wide.to(torch.float8_e5m2)})
    assert found == {"x": {"nan": 1, "inf": 1, "-inf": 1}}
    assert not_finite({"x": torch.ones(2).to(torch.float8_e4m3fn)}) == {}
    with pytest.raises(ValueError, match=r"at hand, but 'x' is \(2,\)"):
        not_finite({"x": torch.ones(2, device="meta")})


BAD_HEADS = [None, "0", [0.0], 1j, torch.ones(7), torch.ones(9, 2, 3, 4)]
BAD_HEADS += [1j * torch.ones(4), torch.eye(3, 4).to_sparse()]
BAD_HEADS += [torch.ones(4, device="meta"), Silent()]


@pytest.mark.parametrize("instead", BAD_HEADS, ids=range(len(BAD_HEADS)))
def test_what_cannot_stand_for_a_head_is_named(instead):
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    with (
        pytest.raises((TypeError, ValueError), match=r"instead"),
        change_heads(layer, {"1.1": instead}),
    ):
        layer(x)
    assert not _global_forward_pre_hooks


@pytest.mark.parametrize("name", [1.1, 0, None, "1.3"])
def test_a_head_that_is_no_head_is_named(name):
    layer = MultiHeadAttention(8, 2)
    told = r"1\.1, 1\.2, but .* is none"
    with (
        pytest.raises(ValueError, match=told),
        change_heads(layer, {name: 0.0, "x": 1.0}),
    ):
        pass


def test_a_probe_asks_for_an_example_and_a_class_of_each():
    """Labels in a column were compared with all, and half were right."""
    x, labels = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
    probe = Probe(x, labels)
    for ask in (
        lambda: probe.right(x, labels[:, None]),
        lambda: probe.right(x, labels[:1]),
        lambda: probe.right(x[:0], labels[:0]),
        lambda: probe.read(x[:, :1]),
        lambda: probe.read(x * math.nan),
        lambda: Probe(x * math.nan, labels),
        lambda: Probe(x[:0], labels[:0]),
        lambda: Probe(x[None], labels),
        lambda: Probe(x, labels[:3]),
        lambda: Probe(x, labels - 1),
        lambda: Probe(x, labels * 10**9),
        lambda: Probe(x, labels.float()),
        lambda: Probe(x + 0j, labels),
        lambda: Probe(x, labels, penalty=-1.0),
        lambda: Probe(x, labels, penalty=math.nan),
        lambda: Probe(x.tolist(), labels),
        lambda: Probe(None, None),
    ):
        with pytest.raises((TypeError, ValueError), match=r"must|agree"):
            ask()
    assert Probe(x, labels.int()).right(x, labels) == probe.right(x, labels)


# Models


@pytest.mark.parametrize("token", [-1, 10])
def test_a_token_without_a_logit_is_not_written(token):
    def step(tokens, cache):
        return torch.eye(10)[tokens[:, -1]], None

    with pytest.raises(ValueError, match="tokens that have logits, 0 to 9"):
        complete(
            step,
            torch.tensor([[3]]),
            1,
            choose=lambda x: torch.full_like(greedy(x), token),
        )


BAD_PLACES = [
    lambda n, offset: None,
    lambda n, offset: 1.0,
    lambda n, offset: torch.tensor(1.0),
    lambda n, offset: torch.ones(6),
    lambda n, offset: torch.ones(n, 1),
    lambda n, offset: torch.ones(n + 1, 6),
    lambda n, offset: torch.ones(2, n, 6),
    lambda n, offset: 1j * torch.ones(n, 6),
]


@pytest.mark.parametrize("positions", BAD_PLACES, ids=range(len(BAD_PLACES)))
def test_positions_are_a_vector_for_each(positions):
    """A number, a row or a column was added to all, and nothing said."""
    embed = Embedding(11, 6, positions=positions)
    with pytest.raises(
        (TypeError, ValueError), match=r"positions (must )?make"
    ):
        embed(torch.tensor([[3, 1, 4], [1, 5, 9]]))


def test_the_norm_of_a_model_leaves_its_width():
    tokens = torch.tensor([[3, 1, 4]])
    narrow = Embedding(11, 6, norm=lambda d: nn.Linear(d, 3))
    last = Encoder(Embedding(11, 6), [], norm=nn.Linear(6, 3))
    for model in (narrow, last):
        with pytest.raises(ValueError, match="a norm must return the shape"):
            model(tokens)


@pytest.mark.parametrize("model", [Encoder, Decoder])
def test_parts_of_a_model_that_are_none_are_named(model):
    embed, block = Embedding(11, 6), EncoderBlock(6, 2, 8, pre=True)
    with pytest.raises(TypeError, match="blocks must be modules"):
        model(embed, ["block"])
    with pytest.raises(TypeError, match="relative must be a function"):
        model(embed, [block], relative=nn.Linear)
    with pytest.raises(TypeError, match="positions must be a function"):
        Embedding(11, 6, positions=nn.Linear)
    told = model(embed, [block], relative=lambda n_q, n_k: None)
    with pytest.raises(TypeError, match="what relative makes must be"):
        told(torch.tensor([[3, 1, 4]]))


def test_what_a_translator_read_is_as_wide_as_it():
    model = Translator(11, 7, 8, attend=AdditiveAttention(8, 8, 8))
    read = model.read(torch.zeros(2, 5).long())
    narrow = read._replace(
        states=torch.ones(2, 5, 6), summary=torch.ones(1, 2, 6)
    )
    with pytest.raises(ValueError, match=r"memory\.states must have 8"):
        model.step(torch.zeros(2, 1).long(), memory=narrow)


@pytest.mark.parametrize("n_heads", [2, 3, 5, 8])
def test_a_rank_takes_no_heads_from_tables_of_fewer_or_more(n_heads):
    """One of 3 heads for 4 was cut into 2 and 1, and the 1 used for two."""
    table = torch.zeros(2, n_heads, 5, 5)
    for tables in ({"bias": table}, {"mask": table.bool()}):
        with pytest.raises(ValueError, match="for each of n_heads=4 heads"):
            check_heads(tables, 4)
    with pytest.raises(ValueError, match="with four axes"):
        check_heads({"bias": table[0]}, 4)
    with pytest.raises(TypeError, match="mask must be a tensor"):
        check_heads({"mask": "causal"}, 4)
    check_heads({"bias": table[:, :1], "mask": None}, 4)
    check_heads({"bias": table}, n_heads)


# Data


@pytest.mark.parametrize(
    "name",
    ["agreement", "coreference", "dates", "language", "sentiment", "tales"],
)
def test_a_number_of_no_word_is_named(name):
    """-1 said the last word."""
    data = importlib.import_module(f"selfattn.data.{name}")
    for bad in (-1, 10**6):
        with pytest.raises(ValueError, match="tokens must be numbers from 0"):
            data.decode(torch.tensor([1, bad]))
    with pytest.raises(ValueError, match="on meta there are none"):
        data.decode(torch.ones(2, dtype=torch.int64, device="meta"))
    if hasattr(data, "encode"):
        assert data.decode(data.encode("")) == ""


@pytest.mark.parametrize("name", [-1, 6, 99])
def test_a_name_that_is_none_is_refused(name):
    names = torch.tensor([0, name])
    with pytest.raises(ValueError, match="names must be numbers from 0 to 5"):
        relations.related(names, 3)
    with pytest.raises(ValueError, match="names must be numbers from 0 to 5"):
        two_lookups.neighbours(names)


def test_a_clause_is_said_by_five_numbers():
    for bad in ([1], [9] * 5, [-1, 3, 0, 0, 0], [1.0, 1, 1, 1, 1]):
        with pytest.raises(ValueError, match="drawn must be 5 whole numbers"):
            sentiment.clause(bad)


def test_an_answer_is_one_for_each_token_and_changes_none():
    for answer in (lambda x: None, lambda x: x[:, :1]):
        batches = sequences.sequence_batches(answer, 2, seed=0)
        with pytest.raises(ValueError, match="answer must make"):
            next(batches)
    batches = sequences.sequence_batches(torch.Tensor.zero_, 2, seed=0)
    tokens, target = next(batches)
    assert tokens.any()
    assert not target.any()


# The doctor


def test_an_answer_that_answers_nobody_gets_a_sentence(capsys):
    check(Silent(), exercise="dot_product/weights")
    assert "✗" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_answer_that_is_a_nested_tensor_is_told(capsys):
    def nested(q, k):
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])

    check(nested, exercise="dot_product/weights")
    assert "It returns a nested tensor" in capsys.readouterr().out


def test_an_error_names_what_says_nothing_of_itself():
    with pytest.raises(TypeError, match="of the type Silent"):
        greedy(Silent())


@pytest.mark.parametrize("other", [torch.float16, torch.float64])
def test_a_value_of_another_type_is_near_to_none(other):
    """Of an attention that answers in float16, the doctor's own comparison
    raised, and that was told of the patient.
    """
    exercise = find("dot_product/weights")
    inputs = exercise.probes[0].make()
    value = exercise.run(exercise.solution, inputs)
    known = described(exercise.mistakes[0])
    known = replace(known, answer=exercise.solution)
    for mine, wanted in ((value, True), (value.to(other), False)):
        seen = SimpleNamespace(outcome=SimpleNamespace(value=mine))
        assert near(exercise, known, seen, inputs) is wanted


class OneHead(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.q, self.k, self.v = (
            nn.Linear(16, 16, **options) for _ in range(3)
        )

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def test_a_module_without_numbers_is_left_out_and_no_other():
    """A lazy one spoilt the diagnosis of all that was in its file."""
    lazy = OneHead()
    lazy.q = nn.LazyLinear(16)
    assert guess(lazy, "lazy").kind == ""
    assert "at its first call" in guess(lazy, "lazy").why
    assert "on the device meta" in guess(OneHead(device="meta"), "meta").why
    assert guess(OneHead(), "whole").kind


@pytest.mark.parametrize("limit", ["-1", "nan"])
def test_a_limit_below_nothing_is_refused(limit, capsys):
    assert main(["nofile.py", "--time-limit", limit]) == 2
    assert "must be a number above 0" in capsys.readouterr().err


def test_what_is_refused_is_json_too(capsys):
    assert main(["nofile.py", "--json"]) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"refused": "There is no file nofile.py"}
    assert "nofile.py" in printed.err
