"""Functions that make causal masks, in whatever convention."""

import dataclasses

from selfattn.doctor.exercises.masks.causal import CAUSAL
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.masks.causal.calling import FACTS, adapt, read
from selfattn.doctor.kinds.masks.causal.mistakes import CONVENTIONS, MISTAKES

REFERENCE = dataclasses.replace(
    CAUSAL,
    name="causal-mask",
    mistakes=MISTAKES,
    optional={
        "length": "another number of keys than of queries",
        "early": "more queries than keys",
        "empty": "no queries at all",
    },
    conventions=CONVENTIONS,
)


KIND = Kind(
    "causal-mask",
    does="of n_q and n_k, or of n, a table: who may look at whom",
    exercise=lambda thing, facts: REFERENCE,
    facts=FACTS,
    read=read,
    adapt=adapt,
)
