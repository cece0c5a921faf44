"""Functions `attend(q, k, v, …)`, under whatever names and in any layout."""

from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.attention.calling import (
    FACTS,
    MEANT,
    PROMISED_BY,
    adapt,
    read,
)
from selfattn.doctor.kinds.attention.own_claims import claims, perhaps
from selfattn.doctor.kinds.attention.variants import REFERENCE, of

KIND = Kind(
    "attention",
    does=REFERENCE.asks,
    exercise=of,
    facts=FACTS,
    read=read,
    adapt=adapt,
    as_used=True,
    meant=MEANT,
    promised_by=PROMISED_BY,
    perhaps=perhaps,
    claims=claims,
)
