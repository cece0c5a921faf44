"""Nobody is accused of a promise that he did not make."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.engine.promises import weighed
from selfattn.doctor.engine.uncalled import refused_arguments
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.multihead import attention as multihead
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report

here = functools.partial(examine, kind="attention", time_limit=None)
KIND = find_kind("attention")


def unscaled(q, k, v):
    return (q @ k.mT).softmax(dim=-1) @ v


def test_a_scale_that_nobody_promised_is_different_and_asked_after():
    report = here(unscaled)
    assert report.mistake.name == "no scale"
    assert "say scale=1.0" in report.different
    assert (report.passed, report.exit_code) == (False, 3)
    assert "different from the usual: no scale" in str(report)


def test_who_told_something_is_held_to_what_is_usual():
    report = here(unscaled, layout="any")
    assert (report.different, report.exit_code) == ("", 1)


def test_who_told_of_it_is_healthy():
    assert here(unscaled, scale=1.0).passed


def found(*needs, sort="raises"):
    """A probe that failed, and what it asks for."""
    probe = Probe("it holds", {"x": "n"}, needs=needs)
    return Finding(probe, Difference(sort, "It is wrong."))


@pytest.mark.parametrize(
    ("findings", "promised", "said", "code"),
    [
        ([found("float16")], (), {}, 3),
        ([found("float16"), found("bfloat16")], (), {}, 3),
        ([found("width"), found("width", "single")], (), {}, 3),
        ([found("float16")], ("float16",), {}, 1),
        # A number type is promised by its name, whatever else is told.
        ([found("float16")], (), {"layout": "any"}, 3),
        ([found("float64"), found("odd")], (), {"layout": "any"}, 3),
        ([found("float16")], ("float16",), {"layout": "any"}, 1),
        ([found("float16"), found()], (), {"layout": "any"}, 1),
        ([found("float16"), found()], (), {}, 1),
        ([found("width"), found("single")], (), {}, 1),
        ([found(sort="value")], (), {}, 3),  # a formula of its own, perhaps
        ([found(sort="value")], (), {"layout": "any"}, 1),
        ([found(sort="nan")], (), {}, 1),
        # Sizes of which nobody spoke, and axes, if nobody spoke of them.
        ([found("odd"), found("long")], (), {"layout": "any"}, 3),
        ([found("odd"), found()], (), {"layout": "any"}, 1),
        ([found("odd")], (), {"takes": ["odd"]}, 1),
        ([found("batches"), found("heads")], (), {"mask": "keep"}, 3),
        ([found("batches")], (), {"layout": "BHND"}, 1),
    ],
)
def test_what_is_assumed_is_asked_after(findings, promised, said, code):
    report = Report("attention", 9, tuple(findings), promised=promised)
    assert weighed(report, KIND, said).exit_code == code


def test_who_computes_in_float32_is_asked_after_what_else_is_wrong():
    """A table of scores that was made hid behind a name of no fault."""
    named = Report(
        "attention",
        9,
        (found("float64", sort="value"), found(sort="value")),
        mistake=functions.computed_in_float32,
    )
    rest = weighed(named, KIND, {})
    assert rest.mistake is None and len(rest.findings) == 1
    promised = named.with_(promised=("float64",))
    assert weighed(promised, KIND, {}).mistake is named.mistake
    alone = named.with_(findings=named.findings[:1])
    assert weighed(alone, KIND, {}).exit_code == 3


def test_of_what_always_raises_nothing_is_known():
    """It was called ill, and had only been called in another way."""
    report = Report("attention", 2, (found("heads"), found("single")))
    assert "However I call it" in weighed(report, KIND, {}).different
    assert weighed(report, KIND, {"layout": "any"}).exit_code == 1
    one_is_right = report.with_(probes=3)
    assert weighed(one_is_right, KIND, {}).exit_code == 1


class NormOfPictures(nn.Module):
    """Of (batch, channels, height, width): each place is normed for itself."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, 12, 1, 1))

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        spread = x.var(dim=1, unbiased=False, keepdim=True)
        return (x - mean) / (spread + 1e-5).sqrt() * self.gain


class WhereToLook(nn.Module):
    """Of pictures, too: one number a place, from two of all channels."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x):
        top, _ = x.max(dim=1, keepdim=True)
        both = torch.cat([top, x.mean(dim=1, keepdim=True)], dim=1)
        return self.conv(both).sigmoid()


def test_an_error_that_speaks_of_none_is_an_error():
    """It was taken for a forgotten return, and so for a fault of its own."""
    words = (
        "It raises AttributeError: 'NoneType' object has no attribute 'to'."
    )
    raised = found()._replace(difference=Difference("raises", words))
    report = Report("attention", 2, (raised, raised))
    assert "However I call it" in weighed(report, KIND, {}).different
    nothing = Difference(
        "nothing", "It gives None, but a tensor is asked for."
    )
    forgot = report.with_(findings=(raised._replace(difference=nothing),) * 2)
    assert weighed(forgot, KIND, {}).exit_code == 1


def test_what_is_often_of_another_shape_may_take_other_axes():
    """Norms of pictures were called ill, and attention to windows."""
    findings = (found("width", sort="shape"), found(sort="raises"))
    report = Report("attention", 5, findings)
    assert "is of another shape or type" in weighed(report, KIND, {}).different
    assert weighed(report, KIND, {"layout": "any"}).exit_code == 1
    most = report.with_(probes=3)
    told = {"layout": "any"}
    assert "is of another shape" in weighed(most, KIND, told).different
    of_masks = Report("causal-mask", 3, findings)  # whose shape is asked
    assert weighed(of_masks, KIND, {}).exit_code == 1
    few = report.with_(probes=6)  # as where a text alone loses its axis
    assert weighed(few, KIND, {}).exit_code == 1
    windows = examine(WhereToLook(), kind="self-attention")
    assert windows.exit_code == 3, str(windows)
    assert "is of another shape or type" in windows.different
    assert examine(NormOfPictures(), kind="layer-norm").passed


def softmax(q, k, v):
    """Attention, within which another softmax is called wrongly."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return F.softmax(scores, dimension=-1) @ v


class Heads(nn.Module):
    """Who calls himself wrongly, and is called rightly."""

    def forward(self, q, k, v):
        return self.attend(q, k, v, scale=1.0)

    def attend(self, q, k, v):
        return softmax(q, k, v)


@pytest.mark.parametrize("thing", [softmax, Heads()])
def test_a_wrong_call_within_is_no_other_way_to_be_called(thing):
    """It raised wherever it was called, and was asked how to call it."""
    report = here(thing, layout="any")
    assert "unexpected keyword argument" in str(report)
    assert (report.different, report.exit_code) == ("", 1)


def of_four(q, k, v, table):
    return softmax(q, k, v) + table


@functools.wraps(of_four)
def wrapped(*arguments, **named):
    return of_four(*arguments, **named)


class OfFour(nn.Module):
    forward = staticmethod(of_four)


class CalledWithFour:
    def __call__(self, q, k, v, table):
        return of_four(q, k, v, table)


@pytest.mark.parametrize(
    "thing",
    [
        of_four,
        wrapped,
        OfFour(),
        CalledWithFour(),
        CalledWithFour().__call__,
        functools.partial(of_four),
    ],
    ids=["function", "wrapped", "module", "called", "bound", "partial"],
)
def test_who_takes_other_arguments_is_asked_how_he_is_called(thing):
    report = here(thing, layout="any")
    assert "However I call it" in report.different, report


def test_what_is_raised_beside_the_thing_is_no_refusal():
    """As where what came back is none of what its kind makes."""
    error = TypeError("flip(): argument 'dims' must be tuple of ints")
    assert not refused_arguments(softmax, error)
    assert not refused_arguments(softmax, TypeError())
    assert refused_arguments(softmax, TypeError("softmax() missing 1 …"))


def test_a_name_that_is_found_comes_before_an_excuse():
    """Who is told by a mistake's name is known, though it always raises."""
    raised = tuple(found() for _ in range(9))
    report = Report(
        "attention",
        9,
        raised,
        mistake=multihead.input_added,
        uncalled=True,
    )
    told = {"layout": "any"}
    assert weighed(report, KIND, told).different == ""
    nameless = report.with_(mistake=None)
    assert "However I call it" in weighed(nameless, KIND, told).different


def bent(q, k, v, mask=None):
    scores = 3 * (q @ k.mT / q.shape[-1] ** 0.5).sin()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1) @ v


def test_a_formula_of_its_own_may_have_its_own_empty_rows():
    """NaN in an empty row is a convention, whatever the other numbers are."""
    report = here(bent)
    assert "numbers are those of no formula" in report.different, report


def hides_what_is_later(q, k, v):
    seen = torch.ones(q.shape[-2], k.shape[-2]).tril(k.shape[-2] - q.shape[-2])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(seen == 0, -torch.inf).softmax(dim=-1) @ v


def test_who_has_no_flag_may_be_causal():
    """Nobody can ask it to be; only who told it apart is held to it."""

    def always(q, k, v):
        return hides_what_is_later(q, k, v)

    def in_vain(q, k, v, causal=False):
        return hides_what_is_later(q, k, v)

    report = here(always, layout="any")
    assert report.mistake.name == "causal without being asked"
    assert "say causal=True" in report.different
    assert here(always, layout="any", causal=False).exit_code == 1
    assert here(in_vain, layout="any").exit_code == 1


def test_a_promise_that_could_not_be_tried_is_not_health():
    def of_three(q, k, v):
        return unscaled(q / q.shape[-1] ** 0.5, k, v)

    report = here(of_three, mask="keep")
    assert (report.passed, report.exit_code) == (False, 4)
    assert "You told mask" in str(report)


def test_a_mask_that_was_told_and_always_raises_is_a_fault():
    def no_masks_yet(q, k, v, mask=None):
        if mask is not None:
            raise ValueError("masks are for later")
        return unscaled(q / q.shape[-1] ** 0.5, k, v)

    report = here(no_masks_yet, mask="keep")
    assert report.exit_code == 1
    assert "masks are for later" in str(report)


def with_a_billion(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-1) @ v


TOLD = {"layout": "any", "mask": "keep", "empty_row": "average"}


def test_a_type_that_was_not_promised_is_not_asked():
    types = ("float64", "float32")
    assert here(with_a_billion, dtypes=types, **TOLD).passed
    assert not here(with_a_billion, **TOLD).passed


def test_who_told_all_but_the_types_is_asked_after_them():
    """A fill of -1e9, sound in float32, was ill: float16 cannot hold it.

    Its owner had told layout, mask and empty row, and not said a word of
    half precision.
    """
    report = here(with_a_billion, **TOLD)
    assert report.mistake.name == "a billion in float16"
    assert report.exit_code == 3
    assert "name it in takes=[…] or dtypes=[…]" in report.different
    promised = here(with_a_billion, dtypes=["float32", "float16"], **TOLD)
    assert (promised.different, promised.exit_code) == ("", 1)


def with_angles_in_float32(x, offset=0):
    n, d = x.shape[-2:]
    rates = 10000.0 ** (-torch.arange(0, d, 2).float() / d)
    angles = (offset + torch.arange(n)).float()[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2)


def test_angles_in_float32_are_no_fault_of_one_who_promised_no_float64():
    """Every model computes them so; told its layout, it was called ill."""
    rotated = functools.partial(examine, kind="rope", time_limit=None)
    report = rotated(with_angles_in_float32, layout="BHND")
    assert report.mistake.name == "angles in float32"
    assert report.exit_code == 3 and "float64" in report.different
    report = rotated(with_angles_in_float32, dtypes=["float64"])
    assert report.exit_code == 1
    types = ["float32", "bfloat16"]
    assert rotated(with_angles_in_float32, dtypes=types).passed


def test_who_told_the_axes_gives_as_many_numbers_as_he_is_asked_for():
    """An output with each head's values added up was but asked after."""
    torch.manual_seed(0)

    def weights(q, k):
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)

    def fewer(q, k, v):
        return (weights(q, k) @ v).sum(dim=-2, keepdim=True)

    def turned(q, k, v):
        return (weights(q, k) @ v).tanh().transpose(-1, -2)

    lost = examine(fewer, kind="attention", layout="BHND")
    assert lost.exit_code == 1, lost
    for asked in (
        examine(turned, kind="attention", layout="BHND"),
        examine(fewer, kind="attention"),
    ):
        assert "is of another shape or type" in asked.different, asked
