"""Who sees whom in a function of queries, keys and values, and what is amiss.

Where no mistake that is known has a function's numbers, such as where it is
built in buckets or round a ring, it may still be seen what it looks at that
it should not: which token, which head, which text. A key that is heard and
whose value is not, or a value that is heard whatever its key is, tells how.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.exercise import Mistake, name_of, unspoken
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.probes import numbers

Table = Callable[[int, int], Tensor]
Attend = Callable[..., Any]
TEXTS, HEADS, N, D = 2, 3, 7, 4
MOVES = 1e-4
FAINT = 0.5  # of what an even share of the weights would move


def told_by_sight(not_causal: Mistake) -> tuple[Mistake, ...]:
    """All that `hint` may say; what is not causal has several names."""
    known = (
        not_causal,
        triangles.upside_down,
        functions.mask_after_softmax,
        functions.masked_with_zero,
        hiding.masked_with_too_small_a_number,
        scores.keys_of_the_first_sequence,
        scores.weights_averaged,
        scores.heads_in_another_order,
        scores.softmax_over_heads,
    )
    return tuple(map(unspoken, known))


def hint(attend: Attend, past: Table | None, not_causal: Mistake) -> str:
    """The name of what is seen that should not be; "" if nothing is.

    Args:
        attend: of q, k and v, (texts, heads, tokens, features).
        past: of n_q and n_k, which keys each query may see; None: all.
        not_causal: what it is called here to see what comes later.
    """
    with torch.no_grad():
        found = among_heads(attend)
        if found is not None or past is None:
            return found or ""
        sees, hears = (among_tokens(attend, name) for name in "vk")
        return of_tokens(attend, sees, hears, past(N, N), not_causal)


def given() -> dict[str, Tensor]:
    """Queries, keys and values that have nothing to do with each other."""
    shape = TEXTS, HEADS, N, D
    return {n: numbers(*shape, seed=s) for s, n in enumerate("qkv")}


def moved(
    attend: Attend, inputs: dict[str, Tensor], **other: Tensor
) -> Tensor:
    """By how much each output moves when some input is another one."""
    before: Tensor = attend(*inputs.values())
    after: Tensor = attend(*{**inputs, **other}.values())
    return (after - before).abs().amax(dim=-1)


def among_heads(attend: Attend) -> str | None:
    """What is amiss among texts and heads; None if each is for itself."""
    inputs = given()
    meets = {name: meeting(attend, inputs, name) for name in "qkv"}
    own = torch.eye(TEXTS * HEADS).bool()
    if all(one.equal(own) for one in meets.values()):
        return None
    of_keys, of_values = meets["k"], meets["v"]
    other = torch.eye(HEADS).flip(0).bool()
    if of_values.equal(torch.block_diag(other, other).bool()):
        return name_of(scores.heads_in_another_order)
    text = torch.block_diag(*[torch.ones(HEADS, HEADS)] * TEXTS).bool()
    if of_values.equal(own) and of_keys.equal(text):
        return of_common_values(attend, inputs)
    first = torch.eye(HEADS).bool().repeat(TEXTS, 1)
    if of_keys[:, :HEADS].equal(first) and not of_keys[:, HEADS:].any():
        return name_of(scores.keys_of_the_first_sequence)
    return ""


def of_common_values(attend: Attend, inputs: dict[str, Tensor]) -> str:
    """Why heads meet by their keys alone: what they say of the same values.

    Of one table of weights for all, they say the same.
    """
    inputs["v"] = inputs["v"][:, :1].expand_as(inputs["v"]).clone()
    said: Tensor = attend(*inputs.values())
    same = torch.allclose(said, said[:, :1].expand_as(said), atol=MOVES)
    return name_of(
        scores.weights_averaged if same else scores.softmax_over_heads
    )


def meeting(attend: Attend, inputs: dict[str, Tensor], name: str) -> Tensor:
    """Which text and head moves (a row) as another (a column) changes."""
    columns = []
    for unit in range(TEXTS * HEADS):
        other = inputs[name].clone().flatten(0, 1)
        other[unit] = numbers(N, D, seed=11)
        gap = moved(attend, inputs, **{name: other.view_as(inputs[name])})
        columns.append((gap > MOVES).flatten(0, 1).any(dim=-1))
    return torch.stack(columns, dim=1)


def among_tokens(attend: Attend, name: str) -> Tensor:
    """Which query moves (a row) as which key or value (a column) changes."""
    inputs, columns = given(), []
    for j in range(N):
        other = inputs[name].clone()
        other[..., j, :] = 2 * numbers(D, seed=12)
        gap = moved(attend, inputs, **{name: other})
        columns.append((gap > MOVES).flatten(0, 1).any(dim=0))
    return torch.stack(columns, dim=1)


def of_tokens(
    attend: Attend,
    sees: Tensor,
    hears: Tensor,
    may: Tensor,
    not_causal: Mistake,
) -> str:
    """What is amiss among tokens, by whose values and keys tell."""
    more, less, heard = sees & ~may, may & ~sees, hears & ~may
    if not more.any():
        after = heard.any() and not less.any()
        return name_of(functions.mask_after_softmax) if after else ""
    if not heard.any():
        return "" if less.any() else in_what_share(attend, more)
    if more.equal(less.mT):
        return name_of(triangles.upside_down)
    if sees.triu(1).any() and not sees.tril(-1).any():
        return name_of(triangles.upside_down)
    if more.triu(1).any() and not less.any():
        return name_of(not_causal)
    return ""


def in_what_share(attend: Attend, more: Tensor) -> str:
    """With what number a key is hidden that has a share whatever it is.

    Where all scores are zero, who hides with a zero hides nothing.
    """
    inputs = {**given(), "q": torch.zeros(TEXTS, HEADS, N, D)}
    i, j = (int(x) for x in more.nonzero()[0])
    other = inputs["v"].clone()
    other[..., j, :] += 1
    share = float(moved(attend, inputs, v=other)[..., i].mean())
    if share > 2 / FAINT / N:
        return ""
    if share > FAINT / N:
        return name_of(functions.masked_with_zero)
    return name_of(hiding.masked_with_too_small_a_number)
