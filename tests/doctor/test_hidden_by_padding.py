"""What layers hide beside padding, and what else is asked of any formula."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.layer.experiments import slopes, steps
from selfattn.doctor.probes import numbers

here = functools.partial(examine, kind="self-attention", time_limit=None)


class Layer(nn.Module):
    """A layer of two heads, of which steps may be others."""

    def __init__(self):
        super().__init__()
        self.in_q, self.in_k, self.in_v, self.out = (
            nn.Linear(8, 8) for _ in range(4)
        )

    def hidden(self, mask):
        return ~mask[:, None, None, :]

    def shares(self, scores):
        return scores.softmax(dim=-1)

    def forward(self, x, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (2, 4)).transpose(1, 2)
            for one in (self.in_q, self.in_k, self.in_v)
        )
        scores = q @ k.mT / 2
        if mask is not None:
            scores = scores.masked_fill(self.hidden(mask), -torch.inf)
        output = self.shares(scores).nan_to_num() @ v
        return self.out(output.transpose(1, 2).flatten(2))


class Upside(Layer):
    """Hides what is real."""

    def hidden(self, mask):
        return mask[:, None, None, :]


class First(Layer):
    """Hides for all texts what the first one hides."""

    def hidden(self, mask):
        return ~mask[:1, None, None, :]


class Ring(Layer):
    """Shares of one's own: no power that anybody knows, and no scale."""

    def shares(self, scores):
        powers = F.softplus(3 * scores) ** 1.5
        return powers / powers.sum(dim=-1, keepdim=True)


class RingUpside(Ring, Upside):
    """The same, hiding what is real."""


class RingFirst(Ring, First):
    """The same, hiding for all texts what the first one hides."""


class Coarse(Ring):
    """Shares in eleven digits, of two to the base."""

    def shares(self, scores):
        return super().shares(scores).half().float()


class Cut(Ring):
    """Shares through which nothing is learned."""

    def shares(self, scores):
        return super().shares(scores).detach()


TOLD = {"layout": "BND", "causal": False, "n_heads": 2, "padding": "keep"}
OWN = {**TOLD, "formula": "own"}


@pytest.mark.parametrize(
    ("layer", "facts", "name"),
    [
        (Upside, TOLD, "mask upside down"),
        (RingUpside, OWN, "mask upside down"),
        (First, TOLD, "one mask for the whole batch"),
        (RingFirst, OWN, "one mask for the whole batch"),
    ],
)
def test_what_was_told_of_padding_is_told_of_the_one_mask(layer, facts, name):
    """It was read in the other meaning, in which it was healthy."""
    report = here(layer(), **facts)
    assert report.mistake.name == name, report
    assert report.facts["mask"] == "keep"


@pytest.mark.parametrize(("layer", "facts"), [(Layer, TOLD), (Ring, OWN)])
def test_and_who_keeps_it_is_healthy(layer, facts):
    assert here(layer(), **facts).passed


def test_of_whom_nothing_was_told_either_meaning_will_do():
    assert here(Upside()).facts["mask"] == "block"


class Dropping(Ring):
    """Shares of which some are dropped, in evaluation, too."""

    def shares(self, scores):
        return F.dropout(super().shares(scores), 0.3)


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (Coarse, "computed in half precision"),
        (Cut, "detached"),
        (Dropping, "dropout that never ends"),
    ],
)
def test_of_any_formula_steps_and_slopes_are_asked(layer, name):
    """Of whose numbers nobody knows, nothing of that was asked."""
    report = here(layer(), **OWN)
    assert report.mistake.name == name, report


class Short(Ring):
    """Shares in float32, whatever goes in."""

    def shares(self, scores):
        return super().shares(scores.float()).to(scores.dtype)


def test_float64_is_asked_of_whom_it_was_told():
    assert here(Short(), **OWN).passed
    report = here(Short(), dtypes=["float64", "float32"], **OWN)
    assert report.mistake.name == "computed in float32", report
    assert here(Ring(), dtypes=["float64", "float32"], **OWN).passed


def test_what_is_rounded_on_the_way_moves_by_leaps():
    def whole(x):
        return x.sin()

    def rounded(x):
        return x.float().sin().to(x.dtype)

    fine = {"x": numbers(2, 5, 4, seed=1).double()}
    assert steps(whole, fine)
    assert not steps(rounded, fine)
    assert steps(rounded, {"x": fine["x"].float()})


def test_slopes_are_those_of_the_numbers():
    given = {"x": numbers(2, 5, 4, seed=1)}
    assert slopes(lambda x: x.sin() * x, given)
    assert not slopes(lambda x: x.sin() * x.detach(), given)
    assert slopes(lambda x: (x * 0).detach(), given)


class Flagged(Ring):
    """Causal if it is told so by PyTorch's name."""

    keeps = True

    def forward(self, x, is_causal=False):
        n = x.shape[1]
        past = torch.ones(1, n, n).bool().tril()
        self.past = past if is_causal and self.keeps else past | True
        return super().forward(x, self.past)

    def hidden(self, mask):
        return ~mask[:, None]


class Deaf(Flagged):
    """The same, ignoring it."""

    keeps = False


def test_a_causal_flag_may_have_the_name_that_it_has_in_pytorch():
    """No flag was found in it; so whether it hides anything was not asked."""
    facts = {"layout": "BND", "causal": False, "n_heads": 2, "formula": "own"}
    assert here(Flagged(), **facts).passed
    report = here(Deaf(), **facts)
    assert report.mistake.name == "causal flag ignored", report


class Gated(Layer):
    """A plain layer behind a flag that it ignores."""

    def forward(self, x, is_causal=False):
        return super().forward(x)


def test_who_has_no_mask_has_not_ignored_one():
    report = here(Gated(), layout="BND", causal=False, n_heads=2)
    assert report.mistake.name == "causal flag ignored", report


class Powerless(nn.Module):
    """Heads' own parameters, a table of numbers, no softmax. Causal."""

    def __init__(self):
        super().__init__()
        shape = 2, 6, 3
        self.W_Q, self.W_K, self.W_V = (
            nn.Parameter(torch.randn(shape) / 3) for _ in range(3)
        )
        self.W_O = nn.Parameter(torch.randn(2, 3, 6) / 3)
        self.b_K = nn.Parameter(torch.zeros(2, 3))
        self.extra = nn.Parameter(torch.zeros(5))

    def forward(self, x):
        q, k, v = (
            torch.einsum("bnd,hdf->bhnf", x, W)
            for W in (self.W_Q, self.W_K, self.W_V)
        )
        scores = q @ (k + self.b_K[:, None]).mT / 3**0.5
        ahead = torch.ones(scores.shape[-2:]).bool().triu(1)
        output = scores.masked_fill(ahead, -1e5) @ v
        return torch.einsum("bhnf,hfd->bnd", output, self.W_O)


def test_numbers_are_asked_for_a_name_before_what_moves_what():
    """Without a softmax what is hidden is heard, and louder than the rest."""
    facts = {"layout": "BND", "causal": True, "n_heads": 2}
    report = here(Powerless(), dtypes=["float64", "float32"], **facts)
    assert report.mistake.name == "no softmax", report


class Faint(Ring):
    """Hides what is padding by a number that is too small."""

    def forward(self, x, mask=None):
        self.mask = mask
        return super().forward(x)

    def shares(self, scores):
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask[:, None, None, :], -1.0)
        return super().shares(scores)


class Blind(Ring):
    """Hides nothing."""

    def forward(self, x, mask=None):
        return super().forward(x)


def test_who_hides_a_little_has_not_ignored_the_padding():
    """Both are heard from padding; to ignore it is to make no difference."""
    report = here(Faint(), **OWN)
    assert not report.passed
    assert report.mistake is None, report
    assert here(Blind(), **OWN).mistake.name == "padding ignored"


class Near(Ring):
    """Sees three tokens, its own the last; or others."""

    def __init__(self, behind=2, ahead=0):
        super().__init__()
        self.behind, self.ahead = behind, ahead

    def forward(self, x):
        n = x.shape[1]
        seen = torch.ones(1, n, n).bool()
        return super().forward(x, seen.tril(self.ahead).triu(-self.behind))

    def hidden(self, mask):
        return ~mask[:, None]


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (Near(behind=3), "window one too wide"),
        (Near(behind=1), "window one too narrow"),
        (Near(ahead=1), "one too many"),
        (Near(behind=99), "claim not kept"),
        (Near(behind=0, ahead=2), "from the other side"),
    ],
)
def test_whom_it_sees_tells_which_mask_it_keeps(layer, name):
    """Of a formula of one's own it was told that its sight is wrong."""
    facts = {"layout": "BND", "n_heads": 2, "formula": "own", "causal": True}

    def table(n_q, n_k):
        return torch.ones(n_q, n_k).bool().tril().triu(-2)

    assert here(Near(), table=table, **facts).passed
    report = here(layer, table=table, **facts)
    found = report.mistake or report.likeness
    assert found is not None, report
    assert found.name == name, report
