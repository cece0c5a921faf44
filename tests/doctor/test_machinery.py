"""The doctor's own parts, one by one, each on the least that it needs."""

import dataclasses
import math
import warnings
from types import SimpleNamespace

import pytest
import torch

from selfattn.doctor import audit, diagnosis, examination, testing
from selfattn.doctor.comparison import Difference, compare, difference
from selfattn.doctor.exercise import (
    Exercise,
    Mistake,
    UnusableError,
    prediction,
    read_docstring,
)
from selfattn.doctor.isolation import (
    Trouble,
    ending,
    in_a_child,
    listen,
    portable,
)
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.kinds.efficient import experiments as looks
from selfattn.doctor.outcome import Outcome, alike, in_words, observe
from selfattn.doctor.patient import Call, Patient, Recorder, parameters
from selfattn.doctor.probes import (
    SIZES,
    Probe,
    in_other_order,
    no_keys_for_the_first,
    numbers,
    real_keys,
    some_keys,
)
from selfattn.doctor.rendering import (
    as_html,
    as_json,
    as_text,
    in_the_book,
    mark,
)
from selfattn.doctor.report import Finding, Report
from selfattn.doctor.shrinking import (
    Patience,
    shorter,
    shrink,
    smallest_failure,
    title,
)
from selfattn.doctor.snippets import MAX_SHOWN, as_code, rounded, wrapped

NAN, INF = math.nan, math.inf
ROWS = {"x": "n d"}


def doubled(x):
    return 2 * x


def an_exercise(*probes, **more):
    """Double a tensor."""
    probes = probes or (Probe("it is doubled", ROWS, gradient=True),)
    exercise = Exercise("x/double", "2 x", doubled, probes, **more)

    @exercise.mistake
    def three_times(x):
        """It is too much.

        Cause: 3.
        Cure: 2.
        """
        return 3 * x

    @exercise.mistake
    def nothing_done(x):
        """It is too little.

        Cause: 1.
        Cure: 2.
        """
        return x.clone()

    return exercise


# --- comparison ------------------------------------------------------------


def test_how_it_fails_does_not_matter_where_the_solution_fails():
    assert difference(Outcome(error="a"), Outcome(error="b")) is None
    only = difference(Outcome(error="E"), Outcome(value=1))
    assert only.kind == "raises" and only.sentence == "It raises E."
    other = difference(Outcome(value=1), Outcome(error="E"))
    assert other.sentence == "It raises nothing."


def test_changed_inputs_count_before_values():
    found = difference(Outcome(1, modified=("q", "k")), Outcome(2))
    assert (
        found.kind == "modifies" and "It changes q and k, " in found.sentence
    )
    assert difference(Outcome(1), Outcome(2)).kind == "value"


def test_nan_is_a_fault_only_where_a_number_was_due():
    due, row = torch.tensor([NAN, 1.0]), torch.tensor([NAN, NAN])
    assert compare(due, due, None) is None
    assert "NaN in 1 of 2 numbers" in compare(row, due, None).sentence
    one = compare(torch.tensor([INF, 1.0]), torch.ones(2), None)
    assert "infinity in 1 of 2" in one.sentence
    assert compare(torch.ones(2), due, None).kind == "value"


@pytest.mark.parametrize(
    ("dtype", "small", "large"),
    [
        (torch.float64, 1e-10, 1e-7),
        (torch.float32, 1e-6, 1e-3),
        (torch.float16, 2e-3, 2e-2),
        (torch.bfloat16, 2e-2, 1e-1),
        (torch.int64, 0, 1),
    ],
)
def test_rounding_is_that_of_the_type(dtype, small, large):
    one = torch.ones(3, dtype=dtype)
    assert compare(one + small, one, None) is None
    assert compare(one + large, one, None).kind == "value"


def test_gradients_are_compared_where_one_is_due_or_given():
    x = torch.ones(2)

    def with_gradient(gradient, error=None):
        return Outcome(x, gradients={"x": gradient}, gradient_error=error)

    none, some = with_gradient(None), with_gradient(x)
    assert difference(none, none) is None
    assert "No gradient flows back to x" in difference(none, some).sentence
    assert "A gradient flows" in difference(some, none).sentence
    assert difference(with_gradient(2 * x), some).kind == "gradient"
    failed = with_gradient(None, "E")
    assert difference(failed, failed) is None
    assert "it raises E." in difference(failed, some).sentence
    assert "it raises nothing." in difference(some, failed).sentence


def test_types_are_compared_in_words():
    assert compare((1, 2), torch.ones(2), None).sentence.endswith("alone.")
    assert "True, but" not in compare(True, 1, None).sentence
    assert compare(1, 1, None) is None and compare(1, 2, None).kind == "value"
    double = torch.ones(2, dtype=torch.float64)
    assert compare(torch.ones(2), double, None).kind == "dtype"


# --- outcome ---------------------------------------------------------------


def test_an_outcome_holds_all_that_an_answer_did():
    def busy(x):
        print("here")
        warnings.warn("there", stacklevel=1)
        x += torch.rand(1)
        return x

    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = observe(an_exercise(), busy, Probe("x", ROWS))
        second = observe(an_exercise(), busy, Probe("x", ROWS))
    assert first.error is None and first.modified == ("x",)
    assert first.value.equal(second.value)  # it draws the same numbers
    assert torch.get_rng_state().equal(state)
    assert first.gradients == {}  # nobody asked


def test_gradients_are_of_a_weighted_sum():
    """Else those of weights, whose rows sum to one, would all be zero."""
    probe = Probe("x", ROWS, gradient=True)
    seen = observe(an_exercise(), lambda x: x.softmax(dim=-1), probe)
    assert seen.gradients["x"].abs().max() > 0.01
    cut = observe(an_exercise(), lambda x: x.detach(), probe)
    assert cut.gradients == {"x": None} and cut.gradient_error is None
    numpy = observe(an_exercise(), lambda x: x * x.numpy().sum(), probe)
    assert numpy.gradient_error.startswith("RuntimeError: Can't call numpy")


def test_stubs_and_errors_are_told_apart():
    def raising(error):
        def answer(x):
            raise error

        return observe(an_exercise(), answer, Probe("x", ROWS))

    assert raising(NotImplementedError("later")).stub
    assert not raising(ValueError("no")).stub
    assert raising(UnusableError("no")).unusable
    assert observe(an_exercise(), lambda x: ..., Probe("x", ROWS)).stub


def test_the_same_to_the_last_bit():
    x = torch.tensor([NAN, 1.0])
    assert alike(x, x.clone()) and not alike(x, torch.tensor([1.0, NAN]))
    assert not alike(x, x.double()) and not alike(x, x[None])
    assert alike("a", "a") and not alike(1, 2)


def test_an_error_is_one_line():
    assert in_words(ValueError("a.\nb")) == "ValueError: a"
    assert in_words(ValueError()) == "ValueError"
    assert len(in_words(ValueError("a" * 999))) < 250


# --- patient ---------------------------------------------------------------


def test_calls_are_recorded_as_they_were_before_the_call():
    def spoil(x, times=1):
        return x.mul_(times)

    x = torch.ones(2)
    patient, calls = Patient(spoil, {}).recorded()
    patient(x, times=torch.tensor(3.0))
    patient(x)
    assert calls[0].arguments[0].tolist() == [1, 1]
    assert calls[0].named["times"].item() == 3
    assert calls[1].arguments[0].tolist() == [3, 3] and len(calls) == 2


def test_a_recorded_module_stays_recorded_in_another_type():
    calls: list[Call] = []
    layer = Recorder(torch.nn.Linear(2, 2), calls)
    layer.to(torch.float64)(torch.ones(1, 2, dtype=torch.float64))
    assert len(calls) == 1 and layer.in_features == 2
    import copy

    copy.deepcopy(Recorder(torch.nn.Linear(2, 2), calls))(torch.ones(1, 2))
    assert len(calls) == 2


def test_parameters_of_functions_modules_and_what_is_written_in_c():
    assert parameters(lambda a, *b, c=1, **d: 0) == ["a", "b", "c"]
    assert parameters(torch.nn.Linear(1, 1)) == ["input"]
    sdpa = parameters(torch.nn.functional.scaled_dot_product_attention)
    assert sdpa[:4] == ["query", "key", "value", "attn_mask"]
    assert parameters(object()) == []


def test_a_patient_is_called_as_its_facts_tell():
    def adapt(thing, facts):
        return lambda x: thing(x + facts["more"])

    assert Patient(doubled, {"more": 1}, adapt)(2) == 6


# --- probes ----------------------------------------------------------------


def test_numbers_are_quarters_and_never_zero():
    x = numbers(50, 50)
    assert (x * 4 == (x * 4).round()).all() and (x != 0).all()
    assert x.min() == -1.5 and x.max() == 1.5
    assert not numbers(9, seed=1).equal(numbers(9, seed=2))


def test_every_input_has_numbers_of_its_own_and_they_come_again():
    probe = Probe("x", {"a": "n d", "b": "n d"})
    made, again = probe.make(), probe.make()
    assert not made["a"].equal(made["b"])
    assert made["a"].equal(again["a"]) and made["a"] is not again["a"]
    assert probe.axes() == {"n": SIZES["n"], "d": SIZES["d"]}
    assert probe.make(d=2)["a"].shape == (SIZES["n"], 2)
    assert dataclasses.replace(probe, sizes={"d": 3}).axes()["d"] == 3


def test_masks_of_probes_are_what_they_say():
    assert real_keys(SIZES).int().sum(dim=-1).tolist() == [[6], [5]]
    table = no_keys_for_the_first(SIZES)
    assert not table[0].any() and table[1:].any(dim=-1).all()
    some = some_keys(SIZES)
    assert some.any(dim=-1).all() and not some.all()
    square = some_keys(dict.fromkeys(SIZES, 5))
    assert not square.equal(square.mT) and square.any(dim=-1).all()


def test_another_order_in_memory_is_the_same_tensor():
    x = numbers(3, 5)
    inputs = {"x": x, "n": 1}
    in_other_order(inputs)
    assert inputs["x"].equal(x) and not inputs["x"].is_contiguous()


# --- diagnosis -------------------------------------------------------------


def test_one_probe_that_is_not_answered_makes_no_stub():
    probes = [Probe("a", ROWS), Probe("b", ROWS, sizes={"d": 3})]
    exercise = an_exercise(*probes)
    half = diagnosis.diagnose(
        lambda x: doubled(x) if x.shape[-1] == 3 else None, exercise
    )
    assert not half.unanswered and len(half.findings) == 1
    assert diagnosis.diagnose(lambda x: None, exercise).unanswered


def test_a_name_needs_agreement_on_every_probe():
    probes = [Probe("a", ROWS), Probe("b", ROWS, sizes={"d": 3})]
    exercise = an_exercise(*probes)
    named = diagnosis.diagnose(lambda x: 3 * x, exercise)
    assert named.mistake.name == "three times" and named.likeness is None

    def often(x):
        return 3 * x if x.shape[-1] == 3 else 5 * x

    report = diagnosis.diagnose(often, exercise)
    assert report.mistake is None and report.likeness.name == "three times"
    assert report.agrees == 1
    assert report.findings[0].probe is probes[0]  # what it does not explain

    def seldom(x):
        return 3 * x if x.shape[-1] == 3 else doubled(x)

    # What it looks like must agree where the answer is right, too.
    assert diagnosis.diagnose(seldom, exercise).likeness is None


def test_who_fails_everywhere_has_no_name():
    exercise = an_exercise()

    @exercise.mistake
    def raises(x):
        """It raises."""
        raise ValueError

    def other(x):
        raise RuntimeError

    assert diagnosis.diagnose(other, exercise).mistake is None


def several(**more):
    """Doubling, of which types other than float32 are optional."""
    probes = (
        Probe("it is doubled", ROWS),
        Probe("float64", ROWS, dtype=torch.float64, needs=("float64",)),
        Probe("two", {"x": "d"}, dtype=torch.float64, needs=("float64",)),
    )
    return an_exercise(*probes, optional={"float64": "float64"}, **more)


def only(dtype, times=2):
    def answer(x):
        if x.dtype != dtype:
            raise TypeError(f"{x.dtype} is refused")
        return times * x

    return answer


def test_what_is_refused_is_no_fault_unless_it_was_said_to_be_taken():
    case = diagnosis.judge(only(torch.float32), several())
    assert case.report.passed and case.report.refused == ("float64",)
    assert case.report.probes == 1
    assert "is refused" in case.report.not_asked["float64"]
    held = diagnosis.judge(only(torch.float32), several(), takes=["float64"])
    assert not held.report.passed and held.report.refused == ()
    less = diagnosis.judge(
        only(torch.float32), several(), lacks={"float64": "not today"}
    )
    assert less.report.passed and less.report.probes == 1
    named = diagnosis.judge(only(torch.float32, times=3), several())
    assert named.report.mistake.name == "three times"
    assert named.report.refused == ("float64",)


def test_a_refusal_is_one_on_every_probe_that_needs_it():
    def sometimes(x):
        return only(torch.float32)(x) if x.ndim > 1 else 2 * x

    assert not diagnosis.judge(sometimes, several()).report.passed
    never = diagnosis.judge(only(torch.float16), several()).report
    assert not never.passed and never.refused == ()


def test_without_names_it_is_only_told_whether_it_passes():
    quick = diagnosis.judge(lambda x: 3 * x, several(), names=False).report
    assert not quick.passed and quick.mistake is None
    refusing = diagnosis.judge(only(torch.float32), several(), names=False)
    assert not refusing.report.passed  # it must be looked into

    def cannot(x):
        if x.dtype == torch.float64:
            raise UnusableError("there is no way to")
        return 2 * x

    plain = diagnosis.judge(cannot, several(), names=False).report
    assert plain.passed and plain.refused == ("float64",)
    assert plain.not_asked == {"float64": "there is no way to"}


def test_what_is_known_is_not_run_again():
    calls = []

    def counted(x):
        calls.append(x)
        return 3 * x

    exercise = several()
    case = diagnosis.judge(counted, exercise, names=False)
    before = len(calls)
    named = diagnosis.judge(counted, exercise, known=case.outcomes)
    assert named.report.mistake.name == "three times"
    assert len(calls) == before == 3


def by_convention():
    """Doubling; of negative numbers it may be said otherwise."""
    exercise = an_exercise(
        Probe("it is doubled", {"x": lambda sizes: torch.ones(3)}),
        Probe(
            "and below zero",
            {"x": lambda sizes: -torch.ones(3)},
            convention="below",
        ),
        conventions={"below": {"doubled": "", "zero": "zeros below"}},
    )

    @exercise.mistake
    def zeros_below(x):
        """Nothing comes of what is below zero."""
        return 2 * x.clamp(min=0)

    return exercise


def test_a_convention_is_a_remark_unless_another_was_said():
    exercise = by_convention()

    def zeros(x):
        return 2 * x.relu()

    free = diagnosis.judge(zeros, exercise).report
    assert free.passed and [m.name for m in free.remarks] == ["zeros below"]
    held = diagnosis.judge(zeros, exercise, said={"below": "doubled"}).report
    assert held.mistake.name == "zeros below" and held.remarks == ()
    kept = diagnosis.judge(zeros, exercise, said={"below": "zero"}).report
    assert kept.passed and kept.remarks == ()
    other = diagnosis.judge(doubled, exercise, said={"below": "zero"}).report
    assert not other.passed


def test_values_are_compared_before_gradients_are_made(monkeypatch):
    """Of mistakes: for most of them need not come so far."""
    asked = []

    def counted(exercise, answer, probe, **sizes):
        asked.append(probe.gradient)
        return observe(exercise, answer, probe, **sizes)

    monkeypatch.setattr(diagnosis, "observe", counted)
    exercise = an_exercise()

    @exercise.mistake
    def cut_off(x):
        """Nothing is learned."""
        return doubled(x).detach()

    report = diagnosis.diagnose(lambda x: doubled(x).detach(), exercise)
    assert report.mistake.name == "cut off"
    # The answer, the solution; two mistakes whose values differ; then one
    # whose gradient tells.
    assert asked == [True, True, False, False, False, True]


# --- shrinking -------------------------------------------------------------


def wrong_if_long(x):
    return x if x.shape[0] > 2 else doubled(x)


def found(probe, kind="value"):
    return Finding(probe, Difference(kind, "It is wrong."))


def test_axes_are_made_shorter_as_long_as_it_fails_alike():
    exercise = an_exercise(Probe("x", ROWS))
    probe = exercise.probes[0]
    sizes, how = shrink(wrong_if_long, exercise, found(probe), Patience())
    assert sizes == {"n": 3, "d": 1} and how.kind == "value"
    fixed = dataclasses.replace(probe, fixed=("d",))
    sizes, _ = shrink(wrong_if_long, exercise, found(fixed), Patience())
    assert sizes == {"n": 3, "d": SIZES["d"]}

    def shaped(x):  # of another shape, when it is narrow
        return x if x.shape[-1] > 4 else x[0]

    sizes, how = shrink(shaped, exercise, found(probe), Patience())
    assert sizes == {"n": 1, "d": 5} and how.kind == "value"


def test_the_smallest_of_all_failures_is_shown():
    probes = (
        Probe("x", ROWS, fixed=("n", "d")),
        Probe("y", {"x": "d"}, fixed=("d",)),
    )
    exercise = an_exercise(*probes)
    first, code = smallest_failure(
        lambda x: x, exercise, [found(probe) for probe in probes]
    )
    assert first.probe is probes[1] and "x = torch.tensor([" in code
    with pytest.raises(ValueError, match="there must be a failure"):
        smallest_failure(doubled, exercise, [])


def test_patience_ends_with_its_trials_or_its_time():
    few = Patience(trials=2, seconds=60)
    assert [few.lasts() for _ in range(3)] == [True, True, False]
    assert not Patience(trials=9, seconds=0).lasts()
    exercise, hasty = an_exercise(Probe("x", ROWS)), Patience(trials=0)
    probe = exercise.probes[0]
    sizes, _ = shrink(lambda x: x, exercise, found(probe), hasty)
    assert sizes == probe.axes()


def test_lengths_to_try_begin_with_the_shortest():
    assert shorter(1) == [] and shorter(5) == [1, 2, 3, 4]
    assert shorter(40) == [*range(1, 10), 16, 32]


def test_a_thing_has_a_title():
    from functools import partial

    assert title(doubled) == title(partial(doubled)) == "doubled"
    assert title(torch.nn.Linear(1, 1)) == "Linear"


# --- snippets --------------------------------------------------------------


def test_code_makes_the_tensor_that_it_stands_for():
    scope = {"torch": torch}
    for x in (
        numbers(2, 3),
        numbers(3, 2).mT,
        numbers(2, dtype=torch.float16),
        torch.tensor([True, False]),
        torch.tensor([INF, -INF]),
        torch.tensor([NAN]),
    ):
        made = eval(as_code(x), scope)
        assert alike(made, x) and made.stride() == x.stride()
    assert as_code(torch.zeros(MAX_SHOWN)) is not None
    assert as_code(torch.zeros(MAX_SHOWN + 1)) is None
    assert as_code(None) == "None"


def test_numbers_are_shown_to_four_places_and_lines_are_broken():
    assert rounded(torch.tensor([1 / 3, -1e-9])) == "[0.3333, 0.0]"
    long = wrapped("x = torch.tensor([" + "0.25, " * 30 + "])")
    assert max(map(len, long.splitlines())) <= 78
    assert wrapped("# " + "a " * 60).count("\n    # ") == 1


# --- report and rendering --------------------------------------------------

WRONG = Finding(Probe("it is so", {}), Difference("value", "It is not."))
KNOWN = Mistake("no luck", None, "It is bad.", "Chance.", "Wait.")


@pytest.mark.parametrize(
    ("report", "passed", "code", "sign"),
    [
        (Report("x", 2), True, 0, "✓"),
        (Report("x", 2, (WRONG,)), False, 1, "✗"),
        (Report("x", 2, trouble="It fell."), False, 1, "✗"),
        (Report("x", 2, question="Which?"), False, 2, "○"),
        (Report("x", 2, unanswered="Not yet"), False, 2, "○"),
    ],
)
def test_each_verdict_has_its_code_and_its_sign(report, passed, code, sign):
    assert report.passed is passed and report.exit_code == code
    assert mark(report) == sign and str(report).startswith(f"{sign} x: ")


def test_what_is_likely_is_a_diagnosis():
    ill = Report("x", 2, (WRONG,))
    assert Report("x", 2).likely and not ill.likely
    assert ill.with_(mistake=KNOWN).likely and ill.with_(likeness=KNOWN).likely


def test_a_report_in_words():
    ill = Report("x", 7, (WRONG, WRONG), patient="mine")
    text = as_text(ill)
    assert text.startswith("✗ mine (x): wrong on 2 of 7 probes\n")
    assert "This does not hold: it is so.\n" in text and "It is not." in text
    like = as_text(ill.with_(likeness=KNOWN, agrees=1))
    assert "On 1 of them it looks like “no luck”." in " ".join(like.split())
    named = ill.with_(mistake=dataclasses.replace(KNOWN, chapter="a#b-c"))
    assert "The chapter “a” (“b c”) explains it." in as_text(named)
    assert "Cause: Chance." in as_text(named)
    assert in_the_book("masks") == "The chapter “masks”"
    met = dataclasses.replace(KNOWN, thread="https://a.b/c-d" + "-e" * 24)
    assert met.thread in as_text(ill.with_(mistake=met))  # in one piece
    noted = Report("x", 2, not_asked={"a": "no", "b": "no"}, facts={"c": 1})
    assert "Not asked, as no: a, b." in as_text(noted)
    assert "I found c=1. If that is wrong, say what is right" in as_text(noted)


def test_a_report_as_a_page_and_for_programs():
    page = as_html(Report("<x>", 2, trouble="a < b"))
    assert "&lt;x&gt;" in page and "a &lt; b" in page and "<x>" not in page
    assert "danger" in page and "success" in as_html(Report("x", 2))
    told = as_json(Report("x", 2, (WRONG,), mistake=KNOWN))
    assert '"healthy": false' in told and '"name": "no luck"' in told
    assert '"how": "It is not."' in told and '"looks_like": null' in told
    like = as_json(Report("x", 2, (WRONG,), likeness=KNOWN))
    assert '"looks_like": "no luck"' in like


# --- isolation -------------------------------------------------------------


class Told:
    """A pipe through which some things were said."""

    def __init__(self, *things):
        self.things = list(things)

    def poll(self, seconds):
        return bool(self.things)

    def recv(self):
        thing = self.things.pop(0)
        if isinstance(thing, Exception):
            raise thing
        return thing


def test_what_a_child_says_is_heard():
    process = SimpleNamespace(exitcode=-11, join=lambda seconds: None)
    nothing, report = Report("x", 0), Report("x", 3)

    def heard(*things):
        return listen(Told(*things), process, nothing, 1.5)

    assert heard("a", "b", report) is report
    assert heard("a", Trouble("It fell")).trouble == (
        "It fell at the probe “a”."
    )
    assert heard("a", "b", EOFError()).trouble == (
        "It crashed the process (SIGSEGV) at the probe “b”."
    )
    late = heard("a").trouble
    assert "within 1.5 seconds" in late and "at the probe “a”" in late
    assert heard().trouble.count("probe") == 0
    assert ending(3).endswith("code 3") and ending(-9).endswith("(SIGKILL)")


def test_a_child_may_take_so_much_memory_and_no_more():
    def eats(watch):
        watch("four hundred megabytes")
        return Report("x", int(torch.ones(10**8).sum() > 0))

    few, enough = (
        in_a_child(eats, Report("x", 0), 60.0, limit) for limit in (1e8, 4e9)
    )
    assert few.trouble.startswith("It raises RuntimeError at the probe “four")
    assert not enough.trouble and enough.probes == 1


def test_a_report_that_is_sent_has_no_functions():
    known = dataclasses.replace(KNOWN, answer=lambda x: x)
    probe = Probe("a", {"x": lambda s: 1}, change=print, experiment=print)
    finding = Finding(
        probe, Difference("value", "b", torch.ones(1), torch.ones(1)), known
    )
    sent = portable(
        Report("x", 1, (finding,), mistake=known, likeness=known).with_(
            remarks=(known,)
        )
    )
    import pickle

    back = pickle.loads(pickle.dumps(sent))
    assert back.findings[0].probe.asks == "a" and str(back)
    assert back.mistake.name == back.remarks[0].name == "no luck"
    assert back.findings[0].rule.answer is None
    assert portable(Report("x", 1)).mistake is None


# --- exercise --------------------------------------------------------------


def test_a_docstring_is_cut_where_its_heads_stand():
    words = read_docstring(
        "It is: so.\n\nCause: A slip,\n    a long one.\nCure: Note: care."
        "\nThread: https://a.b"
    )
    assert words == {
        "symptom": "It is: so.",
        "cause": "A slip, a long one.",
        "cure": "Note: care.",
        "thread": "https://a.b",
    }


def test_a_mistake_has_the_name_and_the_words_of_its_function():
    exercise = an_exercise()
    first = exercise.mistakes[0]
    assert first.name == "three times" and first.chapter == ""
    assert str(first) == "It is too much. 3. 2."

    @exercise.mistake_as(doubled)
    def other(x):
        return x

    assert exercise.mistakes[-1].name == "doubled"
    assert exercise.mistakes[-1].answer is other


def test_inputs_are_put_by_name_where_that_is_said():
    def answer(x, *, more):
        return x + more

    exercise = Exercise("x/y", "a sum", answer, (), by_name=("more",))
    assert exercise.run(answer, {"more": 1, "x": 2}) == 3
    assert exercise.run(None, {}) is None and exercise.run(..., {}) is None
    with pytest.raises(UnusableError, match="hand over the function itself"):
        exercise.run(torch.ones(2), {})


def test_a_prediction_is_read_in_any_form():
    word = prediction("x/word", "which?", "flatter")
    assert diagnosis.diagnose(" Flatter ", word).passed
    number = prediction("x/number", "how many?", [1.0, 2.0])
    assert diagnosis.diagnose((1, 2.001), number).passed
    assert not diagnosis.diagnose((1, 2.1), number).passed


# --- kind ------------------------------------------------------------------


def a_kind(**facts):
    return Kind("x", "y", lambda thing, facts: an_exercise(), facts)


def test_what_is_said_goes_before_what_is_seen_and_both_before_a_try():
    ways = Fact("which", {1: "", 2: ""})
    kind = a_kind(a=ways, b=ways, names=Fact("its names"))
    read = list(kind.readings({"a": 1}, {"a": 2, "b": 2}))
    assert read == [{"a": 1, "b": 2}]
    named = kind.readings({"names": {"x": "y"}}, {"names": {"x": "y", "z": 1}})
    assert all(facts["names"] == {"x": "y", "z": 1} for facts in named)
    assert len(list(kind.readings({}, {}))) == 4
    assert len(list(kind.readings({}, {"try": {"a": (1,)}}))) == 2


def test_facts_are_checked_and_those_tried_late_are_known():
    kind = a_kind(a=Fact("which", {1: ""}), b=Fact("x", {2: ""}, of="mask"))
    kind.check({"a": 1, "takes": ["mask"]})
    with pytest.raises(ValueError, match="a must be one of 1, but it is 3"):
        kind.check({"a": 3})
    with pytest.raises(ValueError, match="'x' has no 'c'; it has a, b, takes"):
        kind.check({"c": 1})
    assert kind.late() == {"mask"}
    assert kind.early({"a": 1, "b": 2}) == ("1",)


# --- examination -----------------------------------------------------------


def test_of_readings_the_most_likely_counts():
    healthy, refusing = Report("x", 9), Report("x", 9, refused=("a",))
    named = Report("x", 9, (WRONG,), mistake=KNOWN)
    ill, worse = Report("x", 9, (WRONG,)), Report("x", 9, (WRONG, WRONG))
    shape = WRONG._replace(difference=Difference("shape", "It is long."))
    far = Report("x", 9, (shape,))
    order = [healthy, refusing, named, ill, far, worse]
    assert sorted(order, key=examination.likelihood, reverse=True) == order


def case(report, **facts):
    return diagnosis.Case(
        None, an_exercise(), [], report.with_(facts=facts), {}
    )


def test_what_is_left_open_is_asked_for_only_if_it_matters():
    kind = a_kind(a=Fact("the way", {1: "one", 2: "two"}))
    ill, other = (Report("x", 9, (WRONG,)) for _ in range(2))
    alike = examination.decide([case(ill, a=1), case(other, a=2)], kind).report
    assert alike.assumed == {"a": 1} and alike.facts == {}
    assert not alike.question and alike.findings
    found = WRONG._replace(probe=Probe("another", {}))
    other = Report("x", 9, (found,))
    asked = examination.decide([case(ill, a=1), case(other, a=2)], kind).report
    assert "Say a, the way: 1 (one) or 2 (two)." in asked.question
    assert asked.findings == () and asked.exit_code == 2
    well = examination.decide(
        [case(ill, a=1), case(Report("x", 9), a=2)], kind
    )
    assert well.report.passed and well.report.facts == {"a": 2}


def test_what_was_said_is_not_told_as_found():
    kind = find_kind("softmax")
    assert kind.facts.keys() <= {"axis", "takes", *kind.facts}
    report = examination.examine(
        lambda q, k, v: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v,
        kind="attention",
        time_limit=None,
        layout="any",
    )
    assert report.passed and "layout" not in report.facts
    assert report.patient == "<lambda>" and report.exercise == "attention"


def test_a_fallback_is_tried_where_nothing_is_likely():
    tried = []

    def fallback(thing, known):
        tried.append(known)
        return {"less": True}

    def exercise(thing, facts):
        short = Probe("b", ROWS, {"n": 3})
        more = () if facts.get("less") else (short,)
        return an_exercise(Probe("a", ROWS), *more)

    kind = Kind("x", "y", exercise, fallback=fallback)

    def seen(thing, **said):
        return examination.examine_here(thing, kind, said)

    assert seen(doubled).passed and not tried
    assert seen(lambda x: 3 * x).mistake.name == "three times" and not tried
    report = seen(lambda x: 5 * x, more=1)
    assert tried == [{"more": 1}] and len(report.findings) == 2
    half = seen(lambda x: 5 * x if len(x) == 3 else 2 * x)
    assert half.passed and half.probes == 1  # with less asked of it


# --- testing ---------------------------------------------------------------


def test_an_assertion_passes_what_is_healthy_and_tells_the_rest(monkeypatch):
    given = {}

    def examined(thing, **options):
        given.update(options)
        return Report("x", 9, trouble="" if thing else "It fell.")

    monkeypatch.setattr(testing, "examine", examined)
    testing.assert_healthy(True, "x", causal=True)
    assert given == {"kind": "x", "causal": True}
    with pytest.raises(AssertionError, match=r"✗ x: no diagnosis\n  It fell"):
        testing.assert_healthy(False, "x")


# --- audit -----------------------------------------------------------------


def test_an_exercise_is_told_what_it_lacks():
    told = " ".join(audit.complaints(an_exercise()))
    assert "at least 8 mistakes, but it names 2" in told
    few = prediction("x/y", "z", 1.0)
    assert "at least 4 mistakes, but it names 0" in audit.complaints(few)[0]
    assert audit.names_given(an_exercise()) == {
        "three times": "three times",
        "nothing done": "nothing done",
    }
    exercise = an_exercise()
    exercise.mistakes.append(
        dataclasses.replace(exercise.mistakes[0], name="thrice", cure="")
    )
    told = " ".join(audit.complaints(exercise))
    assert "“three times” and “thrice” agree on every probe" in told
    assert "“three times” and “nothing done”" not in told
    assert "“thrice” lacks symptom, cause or cure" in told
    assert "“thrice” is called three times" in told


def test_twins_agree_on_every_probe():
    exercise = several()
    triple = exercise.mistakes[0]

    def only_of_rows(x):
        return 3 * x if x.ndim == 2 else 5 * x

    cousin = dataclasses.replace(triple, answer=only_of_rows)
    same = dataclasses.replace(triple, answer=lambda x: x + 2 * x)
    assert audit.twins(triple, same, exercise)
    assert not audit.twins(triple, cousin, exercise)


def test_a_bank_is_held_to_the_solutions_own_conventions():
    assert audit.ours(by_convention()) == {"below": "doubled"}
    assert audit.names_given(by_convention())["zeros below"] == "zeros below"


# --- the looks of mechanisms whose numbers nobody knows --------------------


def averages(q, k, v, causal=False, padding=None):
    """The plain mean of the values that are seen."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = torch.ones(n_q, n_k)
    if causal:
        mask = mask.tril(n_k - n_q)
    return (mask / mask.sum(dim=-1, keepdim=True)).to(v) @ v


def of_tokens(n=6):
    shapes = ((2, n, 4),) * 3
    return {
        name: numbers(*shape, seed=i)
        for i, (name, shape) in enumerate(zip("qkv", shapes, strict=True))
    }


def test_looks_see_who_moves_whom():
    x = of_tokens()
    assert looks.sums(averages, x).allclose(torch.ones(2, 6))
    assert looks.sums(lambda q, k, v: 100 * v, x).max() == 10
    assert looks.who_is_seen(averages, x).all()
    assert looks.itself(averages, {**x, "causal": True}).all()
    first = looks.who_is_seen(lambda q, k, v: v[..., :1, :] + 0 * v, x)
    assert first.tolist() == [True] + [False] * 5
    assert (
        looks.itself(lambda q, k, v: v.roll(1, -2), x).tolist() == [False] * 6
    )


def test_looks_see_the_future_other_texts_and_the_plain_mean():
    x = of_tokens()
    for name in "qk":
        assert not looks.later(averages, x, name)
    assert looks.later(averages, x, "v")
    assert not looks.later(averages, {**x, "causal": True}, "v")
    assert not looks.across(averages, x)
    assert looks.across(lambda q, k, v: v + v.mean(), x)
    assert not looks.told_apart(averages, x)
    assert looks.told_apart(lambda q, k, v: q + v, x)
    assert looks.learned(lambda q, k, v: q + v, x).tolist() == [
        True,
        False,
        True,
    ]
    assert not looks.learned(lambda q, k, v: v.detach(), x).any()


def test_looks_see_what_padding_does():
    x = {name: t[:, None] for name, t in of_tokens().items()}
    x["padding"] = torch.arange(6).expand(2, 6) > 1

    def ignores(q, k, v, padding):
        return averages(q, k, v) + k.mean(dim=-2, keepdim=True)

    def keeps(q, k, v, padding):
        real = padding[:, None, :, None]
        return (
            0 * v + (v * real).sum(-2, keepdim=True) / real.sum(-2)[..., None]
        )

    for name in "kv":
        assert looks.what_moves(ignores, x, name, padded=True)
        assert not looks.what_moves(keeps, x, name, padded=True)
    assert looks.what_moves(keeps, x, "v", padded=False)
    assert looks.sums_of_real(keeps, x).allclose(torch.ones(8, 1))
    assert looks.form(lambda q, k, v, padding: v / 0, x).isnan().all()
