"""Steps that return something else, and logits that cannot be ranked."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from selfattn.models import complete, greedy, sample
from selfattn.models.beams import beam_search
from selfattn.models.steps import MOST, tempered
from selfattn.multihead import KeysValues
from selfattn.origins import AdditiveAttention, Translator

NAN, INF = float("nan"), float("inf")
PROMPT = torch.tensor([[1, 2], [3, 0]])
WAYS = {
    "complete": complete,
    "beams": partial(beam_search, n_beams=2),
    "anew": partial(complete, cached=False),
    "beams anew": partial(beam_search, n_beams=2, cached=False),
    "sample": partial(complete, choose=sample),
}
each = pytest.mark.parametrize("go_on", WAYS.values(), ids=WAYS)


def always(answer):
    """A step that returns this, whatever it is asked."""

    def step(tokens, cache):
        return answer

    return step


ANSWERS = {
    "nothing": (None, TypeError),
    "logits alone": (torch.zeros(2, 5), TypeError),
    "three things": ((torch.zeros(2, 5), None, None), TypeError),
    "no tensor": (([0.0], None), TypeError),
    "three axes": ((torch.zeros(1, 2, 3), None), ValueError),
    "one row of two": ((torch.zeros(1, 5), None), ValueError),
    "one axis": ((torch.zeros(5), None), ValueError),
    "whole numbers": ((torch.ones(2, 5).long(), None), ValueError),
    "no token": ((torch.zeros(2, 0), None), ValueError),
}


@each
@pytest.mark.parametrize("case", ANSWERS)
def test_a_step_returns_logits_of_each_row_and_a_cache(go_on, case):
    """Logits (1, 2, 3) were read as six tokens; others ended in unpacking."""
    answer, error = ANSWERS[case]
    with pytest.raises(error, match="but"):
        go_on(always(answer), PROMPT, 2)


@each
@pytest.mark.parametrize(
    "row", [[0.0, NAN, 1.0], [0.0, INF, 1.0], [-INF] * 3, [NAN] * 3]
)
def test_logits_that_cannot_be_ranked_are_refused(go_on, row):
    """Token 0 followed, or whatever NaN was largest at, without a word."""
    logits = torch.stack((torch.tensor([0.0, 1.0, -INF]), torch.tensor(row)))
    with pytest.raises(ValueError, match="a row of these has none"):
        go_on(always((logits, None)), PROMPT, 2)
    for choose in (greedy, sample):
        with pytest.raises(ValueError, match="a row of these has none"):
            choose(logits)
        assert choose(logits[:1]).shape == (1,)


@each
@pytest.mark.parametrize("stop", [-1, 5, 10**20])
def test_who_stops_at_no_token_is_told(go_on, stop):
    """An IndexError, an OverflowError, or a text that never ended."""
    with pytest.raises(ValueError, match="stop must be"):
        go_on(always((torch.zeros(2, 5), None)), PROMPT, 2, stop=stop)


CHOICES = {
    "logits": lambda logits: logits[:, 0],
    "a column": lambda logits: logits.argmax(-1, keepdim=True),
    "nothing": lambda logits: None,
    "one for all": lambda logits: logits[0].argmax(),
}


@pytest.mark.parametrize("case", CHOICES)
def test_a_choice_is_one_token_a_row(case):
    """Floating-point tokens came back."""
    step = always((torch.randn(2, 5), None))
    with pytest.raises(ValueError, match=r"choose must make .*\(2,\)"):
        complete(step, PROMPT, 2, choose=CHOICES[case])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.half])
@pytest.mark.parametrize("temperature", [1e-320, 1e-45, 1e-6, 1e300, INF])
def test_no_temperature_spoils_sound_logits(temperature, dtype):
    """Logits were infinite before softmax, and called NaN."""
    logits = torch.tensor([3.0, 60.0, -INF, 59.0], dtype=dtype)
    options = {"temperature": temperature}
    drawn = [int(sample(logits, **options)) for _ in range(99)]
    assert set(drawn) == ({1} if temperature < 1 else {0, 1, 3})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("few", [{"top_k": 1}, {"top_p": 1e-9}])
def test_a_large_temperature_leaves_the_likeliest_the_likeliest(few, dtype):
    """Divided by 1e8, all logits were zero in float16: the "likeliest" one
    was the first, or any.
    """
    logits = torch.tensor([3.0, 60.0, 59.0], dtype=dtype).expand(50, 3)
    assert (sample(logits, temperature=1e8, **few) == 1).all()


@pytest.mark.parametrize(
    ("dtype", "most", "temperature"),
    [
        (torch.float16, 6e4, 1e5),
        (torch.float16, 6e4, 1e300),
        (torch.bfloat16, 3e38, 1e38),
        (torch.bfloat16, 3e38, 1e36),
        (torch.float32, 3e38, 2e38),
        (torch.float32, 3e38, 5e35),
        (torch.float64, 1e308, 1e308),
        (torch.float64, 1e308, 1e306),
        (torch.float64, 1.7e308, 1e300),
    ],
)
def test_logits_may_be_as_far_apart_as_their_type_has_them(
    dtype, most, temperature
):
    """Their difference was infinite, and the lower one never drawn."""
    logits = torch.tensor([most, -most, 0.0, -INF], dtype=dtype)
    wide = torch.promote_types(dtype, torch.float32)
    limit = torch.finfo(wide).max
    over = [float(x) / min(temperature, limit) for x in logits]
    wanted = torch.tensor(over, dtype=torch.float64).softmax(-1)
    found = tempered(logits, temperature)
    assert found.dtype == wide and not found.isnan().any()
    assert_close(found.double().softmax(-1), wanted, atol=1e-4, rtol=0)


def test_a_temperature_leaves_small_differences_of_large_logits():
    """Divided first, they would be rounded."""
    found = tempered(torch.tensor([1e7, 1e7 - 1]), 3.0)
    assert_close(found, torch.tensor([0.0, -1 / 3]))


def test_more_tokens_than_can_be_drawn_from_are_refused():
    logits = torch.zeros(()).expand(1, MOST + 1)
    with pytest.raises(ValueError, match=f"among {MOST} at most"):
        sample(logits)
    assert greedy(logits).tolist() == [0]


def kept(n, n_beams):
    return KeysValues(torch.zeros(n, 1, 2, 3), torch.zeros(n, 1, 2, 3))


@pytest.mark.parametrize(
    ("cache", "error"),
    [
        (torch.zeros(2, 3), TypeError),  # was cut along its first axis
        ([torch.zeros(2, 3)], TypeError),
        (kept(2, 1), TypeError),
        ({"k": 1}, TypeError),
        ([kept(3, 1)], ValueError),
    ],
)
def test_beams_go_on_from_a_list_of_keys_and_values(cache, error):
    step = always((torch.zeros(2, 5), cache))
    with pytest.raises(error, match="but"):
        beam_search(step, PROMPT, 2, n_beams=2)


def test_a_translator_keeps_no_keys_and_goes_on_anew():
    """Its state is one tensor, of which beams made a list."""
    torch.manual_seed(0)
    model = Translator(9, 7, 8, attend=AdditiveAttention(8, 8, 8))
    source = torch.tensor([[1, 2, 3], [4, 5, 6]])
    once = partial(model.step, memory=model.read(source))
    with pytest.raises(TypeError, match="list of KeysValues"):
        beam_search(once, PROMPT, 2, n_beams=2)
    assert complete(once, PROMPT, 3).shape == (2, 5)
