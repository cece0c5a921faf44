"""Functions `attend(q, k, v, …)`, under whatever names and in any layout."""

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.attention.calling import FACTS, adapt, read
from selfattn.doctor.kinds.attention.mistakes import CONVENTIONS, MISTAKES
from selfattn.doctor.kinds.attention.probes import OPTIONAL, PROBES
from selfattn.dot_product import attention

REFERENCE = Exercise(
    "attention",
    asks="softmax(q kᵀ / √d) v, under a mask or a causal flag",
    solution=attention,
    probes=PROBES,
    by_name=("mask", "causal"),
    mistakes=list(MISTAKES),
    optional=OPTIONAL,
    conventions=CONVENTIONS,
)

KIND = Kind(
    "attention",
    does=REFERENCE.asks,
    exercise=lambda thing, facts: REFERENCE,
    facts=FACTS,
    read=read,
    adapt=adapt,
)
