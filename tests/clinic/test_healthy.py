"""The patients that are called sound are sound.

What computes a formula is compared with it, written plainly; what has parts
is compared with PyTorch's own, or with itself on what it should not notice.
"""

import pytest
import torch

from tools.measure.clinic import oracle
from tools.measure.clinic.by_hand import formulas
from tools.measure.clinic.oracle import answer, trials
from tools.measure.clinic.patients import patient, stirred, styles

STYLES = list(styles())
FUNCTIONS = [s for s in STYLES if s.kind in ("attention", "efficient")]


def named(style):
    return f"{style.kind}/{style.name}"


def of_kind(*kinds):
    return pytest.mark.parametrize(
        "style", [s for s in STYLES if s.kind in kinds], ids=named
    )


def close(mine, other, exact=True):
    torch.testing.assert_close(
        mine.double(),
        other.double(),
        rtol=1e-9 if exact else 1e-4,
        atol=1e-9 if exact else 1e-4,
        equal_nan=True,
    )


def test_there_are_eighty_styles_at_least():
    assert len(STYLES) >= 80
    halves = [style.half for style in STYLES]
    assert min(halves.count("tune"), halves.count("measure")) >= 40


# The whole judgement of one of each kind; what is asked of all is below.
ONE_OF_EACH = list({style.kind: style for style in STYLES}.values())


@pytest.mark.parametrize("style", ONE_OF_EACH, ids=named)
def test_each_is_no_other_than_itself(style, monkeypatch):
    monkeypatch.setattr(oracle, "TRIALS", 3)
    one, other = patient(style.text), patient(style.text, "again")
    assert oracle.judged(one, other, style.kind).is_ == "equivalent"


@pytest.mark.parametrize("style", STYLES, ids=named)
def test_each_can_be_called_as_it_promises(style):
    made = patient(style.text)
    thing = stirred(made.thing)
    for given, by in trials(made, style.kind, torch.float64, 3):
        said = answer(thing, given, style.kind, by)
        assert (said.error, said.changed) == ("", False)
        again = answer(thing, given, style.kind, by)
        for one, other in zip(said.tensors, again.tensors, strict=True):
            close(one, other)


@of_kind("attention", "efficient")
def test_functions_compute_their_formula(style):
    made = patient(style.text)
    exact = "float64" in made.facts.get("dtypes", ["float64"])
    for i, (given, by) in enumerate(
        trials(made, style.kind, torch.float64, 8)
    ):
        described = made.inputs[i % len(made.inputs)]
        said = answer(made.thing, given, style.kind, by).tensors[0]
        close(said, formulas.attention(made.facts, described, given), exact)


@of_kind("rope")
def test_rotations_turn_pair_by_pair(style):
    made = patient(style.text)
    for given, by in trials(made, style.kind, torch.float64, 6):
        x, start = given.values()
        start = start if isinstance(start, int) else int(start[0])
        exact = "float64" in made.facts.get("dtypes", ["float64"])
        said = answer(made.thing, given, style.kind, by).tensors[0]
        close(said, formulas.rotated(made.facts, x, start), exact)


@of_kind("sinusoidal")
def test_tables_hold_sines_and_cosines(style):
    made = patient(style.text)
    for given, by in trials(made, style.kind, torch.float64, 4):
        n, d = given.values()
        if made.facts.get("width_first"):
            n, d = d, n
        said = answer(made.thing, given, style.kind, by).tensors[0]
        close(said, formulas.waves(made.facts, n, d), exact=False)


@of_kind("positions")
def test_positions_add_the_rows_of_their_table(style):
    made = patient(style.text)
    thing, table = made.thing, made.facts["table"]
    if isinstance(thing, torch.nn.Module):
        thing.eval()
    for given, by in trials(made, style.kind, torch.float64, 6):
        (x,) = given.values()
        axis = 0 if made.facts["layout"] == "NBD" else 1
        rows = table[: x.shape[axis]]
        rows = rows[:, None] if axis == 0 else rows
        said = answer(thing, given, style.kind, by).tensors[0]
        close(said, x + rows, exact=False)


@of_kind("layer-norm", "rms-norm")
def test_norms_are_pytorchs(style):
    made = patient(style.text)
    thing = stirred(made.thing)
    for given, by in trials(made, style.kind, torch.float64, 8):
        said = answer(thing, given, style.kind, by).tensors[0]
        x, *rest = given.values()
        d, eps = x.shape[-1:], made.facts["eps"]
        exact = "float64" in made.facts.get("dtypes", ["float64"])
        learnt = rest or [p.detach().to(x) for p in thing.parameters()]
        if made.facts.get("gain") == "one plus":
            learnt[0] = 1 + learnt[0]
        kind = torch.nn.functional
        norm = kind.layer_norm if style.kind == "layer-norm" else kind.rms_norm
        close(said, norm(x, d, *learnt, eps=eps), exact)


@of_kind("causal-mask")
def test_causal_masks_hide_what_is_later(style):
    made = patient(style.text)
    for given, by in trials(made, style.kind, torch.float64, 8):
        n_q, n_k = next(iter(given.values())), list(given.values())[-1]
        said = answer(made.thing, given, style.kind, by).tensors[0]
        said = said.reshape(said.shape[-2:])  # texts and heads are of one
        assert torch.equal(
            as_keep(said, made.facts["mask"]), formulas.past(n_q, n_k, "last")
        )


@of_kind("padding-mask")
def test_padding_masks_hide_what_is_padded(style):
    made = patient(style.text)
    for given, by in trials(made, style.kind, torch.float64, 8):
        first, *rest = given.values()
        real = first != 0
        if made.facts["of"] == "lengths":
            real = torch.arange(rest[0]) < first[:, None]
        said = answer(made.thing, given, style.kind, by).tensors[0]
        kept = as_keep(said, made.facts["mask"])
        assert torch.equal(kept.flatten(), real.flatten())
        assert kept.ndim == len(made.facts["axes"])


def as_keep(mask, meaning):
    """A mask as True where one may look."""
    return {
        "keep": mask == True,  # noqa: E712
        "block": mask == False,  # noqa: E712
        "add": mask == 0,
        "ones": mask == 1,
        "zeros": mask == 0,
    }[meaning]


@of_kind("softmax")
def test_softmaxes_are_pytorchs(style):
    made = patient(style.text)
    for given, by in trials(made, style.kind, torch.float64, 12):
        said = answer(made.thing, given, style.kind, by).tensors[0]
        scores, *rest = given.values()
        exact = "float64" in made.facts.get("dtypes", ["float64"])
        seen = torch.ones_like(scores).bool()
        if rest and isinstance(rest[0], torch.Tensor):
            seen = rest[0]
            if seen.dtype != torch.bool:
                keys = torch.arange(scores.shape[-1])
                seen = (keys < seen[:, None, None]).expand_as(scores)
            if made.facts["mask"] == "block":
                seen = ~seen
        close(
            said,
            formulas.weights(scores, seen, made.facts["empty_row"]),
            exact,
        )


@of_kind("cached-decoder")
def test_decoders_say_in_chunks_what_they_say_at_once(style):
    made = patient(style.text)
    thing = stirred(made.thing)
    for given, by in trials(made, style.kind, torch.float64, 4):
        (x,) = given.values()
        chunks = answer(thing, given, style.kind, by).tensors[0]
        close(chunks, thing(x, None)[0])
        alone = torch.cat([thing(text[None], None)[0] for text in x])
        close(chunks, alone)
        later = x.clone()
        later[:, -1] += 1
        close(thing(later, None)[0][:, :-1], chunks[:, :-1])


@of_kind("self-attention", "cross-attention", "encoder-block", "decoder-block")
def test_texts_of_a_batch_do_not_see_each_other(style):
    made = patient(style.text)
    thing = stirred(made.thing)
    for given, _ in trials(made, style.kind, torch.float64, 3):
        batch = 1 if made.facts["layout"] == "NBD" else 0
        told = [
            n
            for n, words in made.inputs[0].items()
            if "b" in words.split() or words.startswith("=")
        ]
        whole = first(thing(**given))
        for i in range(whole.shape[batch]):
            alone = dict(given)
            for name in (n.rstrip("?") for n in told):
                if name in given:
                    of = batch if given[name].is_floating_point() else 0
                    alone[name] = given[name].narrow(of, i, 1)
            close(first(thing(**alone)), whole.narrow(batch, i, 1))


def first(value):
    """The output, of an output with weights."""
    return value[0] if isinstance(value, tuple) else value
