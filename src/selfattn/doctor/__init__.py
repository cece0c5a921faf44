'''The doctor: what is wrong with this attention, and how to mend it.

A reader of the book meets one function. It prints, and returns nothing:

>>> check(lambda q, k: (q @ k.mT).softmax(-1), exercise="dot_product/weights")
✗ dot_product/weights: no scale
  Your weights are too sharp, the more so the more features a key has. The
  scores go into softmax as they are. Divide them by the square root of the
  number of features first: q @ k.mT / math.sqrt(q.shape[-1]).

Who has attention of their own needs no exercise. `examine` takes any function
or module of a kind (`python -m selfattn.doctor --list` lists them), finds out
how it is called, and returns a `Report`. It runs in a process of its own, with
limits on time and memory:

>>> from selfattn import fused_attention
>>> examine(fused_attention, kind="attention").passed
True

In tests, `assert_healthy` raises with the report; in a shell,
`python -m selfattn.doctor package.module:Thing --kind self-attention` prints
it. What is known of a thing is said as a fact, such as ``causal=True``.

How it works. An exercise is a solution, some probes and a bank of named
mistakes. A probe is an input on which wrong answers show. The answer is run
on every probe, and what comes back (a value, an error, gradients, inputs it
has changed) is compared with what the solution gives. If all agree, it
passes. If not, every named mistake is run on the same probes; the one that
agrees with the answer on all of them is its diagnosis. If none does, the
report says which property fails, on the smallest input that was found.

A kind, in `kinds/…/kind.py`, is the same for things that are not all called
alike: an exercise, facts that may be said of a thing, and an adapter that
calls it as its facts tell. See `selfattn.doctor.kind`.

Where it lives. The words of it all (`probes`, `exercise`, `patient`, `kind`)
stand beside this file. What is known of mistakes is in `exercises`, `kinds`
and `museum`; `engine` finds out, `report` tells, and `self_test` asks whether
every mistake that is known is caught.

How to add an exercise. Write `exercises/<chapter>/<name>.py`; nothing else
needs to know. Every `Exercise` in it is found under its own name,
"<chapter>/<name>":

    from selfattn.doctor.exercise import Exercise, mistake
    from selfattn.doctor.probes import Probe

    @mistake
    def sum_over_columns(x):
        """You get one sum for each column.

        Cause: The sum runs along dim=-2.
        Cure: Sum along the last axis: dim=-1.
        """
        return x.sum(dim=-2)

    ROW_SUMS = Exercise(
        "my_chapter/row_sums",
        asks="the sum of every row",
        solution=lambda x: x.sum(dim=-1),
        probes=(Probe("rows are summed, not columns", {"x": "n d"}),),
        mistakes=(sum_over_columns,),
    )

The mistake's name is the function's, and its docstring is what a student
reads. A prediction, whose answer is a number, a list of numbers or a word, is
made by `prediction`, and its mistakes, functions that return such an answer,
by `mistaken_value`. An answer that is a class or a module is run by a
``use`` of the exercise's own. `complaints` says what an exercise lacks, and
the tests allow none: at least eight mistakes (four for a prediction), each
rejected by its own name, no two alike on every probe, none equal to the
solution.
'''

from selfattn.doctor.engine.diagnosis import diagnose
from selfattn.doctor.engine.examination import check, examine
from selfattn.doctor.exercise import Exercise, Mistake, prediction
from selfattn.doctor.exercises import names
from selfattn.doctor.kinds.layer.refilling import refilled
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Report
from selfattn.doctor.self_test import complaints, survival
from selfattn.doctor.testing import assert_healthy

__all__ = [
    "Exercise",
    "Mistake",
    "Probe",
    "Report",
    "assert_healthy",
    "check",
    "complaints",
    "diagnose",
    "examine",
    "names",
    "prediction",
    "refilled",
    "survival",
]
