"""What a function looks like, by what it takes and what it gives back.

Each looks at one kind, and says how it found it, in words that end the
sentence "it looks like …"; "" if the function is not of that form.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.door.names import MASKS, OF_LENGTHS, says, snake
from selfattn.doctor.door.things import words_of
from selfattn.doctor.door.trying import (
    alike,
    close,
    drawn,
    first_tensor,
    needed,
    tensor,
    two_valued,
)
from selfattn.doctor.patient import parameters

Function = Callable[..., Any]

N, M, D = 5, 7, 8
WIDTHS = (D, *range(2, 33), 48, 64, 128)  # of tokens, the likeliest first
ROUNDED = 0.01  # what half precision adds up to is off by less
BY_NAME = "of its name"  # which is the weakest reason
TOKENS = torch.tensor([[4, 2, 7, 0, 0], [1, 2, 3, 4, 5]])
LENGTHS = torch.tensor([3, 5])


# Of queries, keys and values: with heads, in a batch, or one text, with tokens
# before features, or before what is usually in front of them.
ORDERS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 2), (1, 0, 2), (0, 1))


def of_three(f: Function, name: str) -> str:
    """Attention: queries, keys and values, and an average of values."""
    three = [n.strip("_").lower() for n in parameters(f)[:3]]
    for end in (0, -1):  # as in query and xq
        if sorted(n[end] for n in three if n) == ["k", "q", "v"]:
            return "it takes q, k and v"
    if len(needed(f)) != 3:
        return ""
    for axes, m in product(ORDERS, (M, N)):  # some take but as many keys
        front = (2, 3)[: len(axes) - 2]
        q, k = drawn(*front, N, D), drawn(*front, m, D, seed=1)
        v, ones = torch.ones(*front, m, 4), torch.ones(*front, N, 4)
        made = tensor(f, *(x.permute(axes) for x in (q, k, v)))
        if made is not None and close(made, ones.permute(axes)):
            return "its third argument is averaged"
    return ""


def of_scores(f: Function, name: str) -> str:
    """Softmax: positive numbers of the same shape, that sum to one."""
    x = drawn(3, N, M)
    made = first_tensor(f, ((x,), (x, -1), (x, None)))
    if not alike(made, x):
        return ""
    off = [(made.sum(axis) - 1).abs().max() for axis in range(3)]
    if bool((made >= 0).all()) and min(off) < ROUNDED:
        return "what it gives is positive, and sums to one"
    return BY_NAME if says(name, "softmax") else ""


def of_a_causal_mask(f: Function, name: str) -> str:
    """A mask for the past: of one number or two, a square of two values."""
    made = first_tensor(f, ((N, M), (N,)))
    if made is None or not made.ndim or made.numel() != N * made.shape[-1]:
        return ""
    table = made.reshape(N, -1)
    if table.shape[1] not in (N, M) or not two_valued(table):
        return ""
    return "of numbers of tokens it makes a table of two values"


def of_a_padding_mask(f: Function, name: str) -> str:
    """A mask for padding: of lengths or tokens, a row of two values each."""
    calls = [(LENGTHS, N), (LENGTHS,), (TOKENS, 0), (TOKENS,)]
    of_lengths = any("len" in word for word in (name, *parameters(f)))
    for given in calls if of_lengths else calls[2:]:
        made = tensor(f, *given)
        if made is None or made.ndim < 2 or not two_valued(made):
            continue
        if made.shape[0] != 2 or made.shape[-1] != N:
            continue
        if not made[0].equal(made[1]):  # one of the texts has padding
            return "of texts it makes a row of two values each"
    return ""


def of_a_table(f: Function, name: str) -> str:
    """A table of positions: of two numbers, so many rows, so wide."""
    for given in ((N, D), (D, N)):
        made = tensor(f, *given)
        if made is None or made.numel() != N * D or two_valued(made):
            continue
        if made.shape[-2:] in ((N, D), (D, N)) and bool(
            (made.abs() < 2).all()
        ):
            return "of two numbers it makes a table that is so long and wide"
    return ""


def of_a_rotation(f: Function, name: str) -> str:
    """RoPE: the same lengths, turned by an angle for each position."""
    found = ""
    for width in (D, 4, 6, 12, 16, 32, 64):
        x = drawn(2, 1, 1, width).expand(2, 4, 4, width)
        made = first_tensor(f, calls_of_a_rotation(x))
        if not alike(made, x):
            continue
        kept = close(made.norm(dim=-1), x.norm(dim=-1))
        if kept and not close(made, made[:, :1, :1].expand_as(made)):
            if len(needed(f)) > 2:
                return "it turns tokens by tables that it is handed"
            return "it turns tokens by their place, and keeps their lengths"
        found = BY_NAME if says(name, "rope") else ""
    return found


def calls_of_a_rotation(x: Tensor) -> list[tuple[Any, ...]]:
    """Tokens alone, with places, or with tables; and a query and a key."""
    n, pairs = x.shape[-2], x.shape[-1] // 2
    angles = torch.arange(n)[:, None] * 0.3 ** torch.arange(pairs)
    tables = [(x, t.cos(), t.sin()) for t in (angles.repeat(1, 2), angles)]
    both = [(x, *given) for given in tables]
    return [(x,), (x, 0), (x, torch.arange(n)), *tables, *both]


def of_addition(f: Function, name: str) -> str:
    """Positions: what it adds is the same whatever the tokens are."""
    for width in WIDTHS:
        one, other = drawn(2, 3, width), drawn(2, 3, width, seed=1)
        first, second = tensor(f, one), tensor(f, other)
        if not (alike(first, one) and alike(second, one)):
            continue
        added = first - one
        if close(added, second - other) and not close(first, one):
            return "it adds the same to all tokens, whatever they are"
    return BY_NAME if says(name, "positions") else ""


def of_a_norm(f: Function, name: str) -> tuple[str, str]:
    """A norm with its parameters: which of the two, and why."""
    ones, zeros = torch.ones(D), torch.zeros(D)
    behind = (ones, zeros), (ones, zeros, 1e-5), (ones,), (ones, 1e-5)

    def of_tokens(x: Tensor) -> Tensor | None:
        return first_tensor(f, [(x, *rest) for rest in behind])

    def of_parameters(x: Tensor) -> Tensor | None:
        return first_tensor(f, [(ones, zeros, x), (ones, x)])

    found = (which_norm(one, D, name) for one in (of_tokens, of_parameters))
    return next((one for one in found if one[0]), ("", ""))


def which_norm(
    norm: Callable[[Tensor], Tensor | None], width: int, name: str
) -> tuple[str, str]:
    """Which norm something is of tokens so wide, and why it seems so.

    Of a token and its opposite it makes opposites, but for the shift. Without
    that, a token is what it was, or its distance from its mean, times a factor
    of its own; whatever its size is taken for, and each feature's gain.
    """
    x = torch.tensor([1.0, 2.0, 5.0])[:, None] * (drawn(2, 3, width) + 1)
    made, opposite = norm(x), norm(-x)
    if not (alike(made, x) and alike(opposite, x)):
        return "", ""
    made = (made - opposite) / 2
    if is_resized(x, made) and not OF_LENGTHS.search(snake(name)):
        return "rms-norm", "it gives tokens another size"
    if is_resized(x - x.mean(dim=-1, keepdim=True), made):
        return "layer-norm", "it takes tokens' mean away, and their size"
    for kind in ("rms-norm", "layer-norm"):
        if says(name, kind):
            return kind, BY_NAME
    return "", ""


def is_resized(x: Tensor, made: Tensor) -> bool:
    """Whether each token got a factor of its own, and each feature its gain.

    >>> x, factors = torch.rand(3, 5), torch.rand(3, 1)
    >>> gains = torch.rand(5)
    >>> is_resized(x, x * factors * gains), is_resized(x, x * gains)
    (True, False)
    """
    ratio = (made.double() / x.double()).flatten(0, -2)
    factors = ratio[:, :1] / ratio[:1, :1]
    alone = close(factors, torch.ones_like(factors))
    return not alone and close(ratio, factors * ratio[:1])


LOOKS = {
    "causal-mask": of_a_causal_mask,
    "padding-mask": of_a_padding_mask,
    "sinusoidal": of_a_table,
    "softmax": of_scores,
    "rope": of_a_rotation,
    "positions": of_addition,
}
# So much may be asked for where one of a kind is called; who asks for more
# is of another.
MOST = {
    **{"causal-mask": 3, "padding-mask": 3, "sinusoidal": 3, "softmax": 3},
    **{"rope": 5, "positions": 2, "rms-norm": 3, "layer-norm": 4},
}


def used(f: Function) -> list[str]:
    """The names of what it calls, as far as its code can be looked at."""
    try:
        return sorted(words_of(f))
    except Exception:
        return []


def kinds_of(f: Function, name: str) -> list[tuple[str, str]]:
    """The kinds that a function may be of, the likeliest first, and why."""
    if why := of_three(f, name):
        both = ["attention", "efficient"]
        others = [n for n in parameters(f) if not MASKS.search(n)]
        if says(" ".join((name, *others, *used(f))), "efficient"):
            both.reverse()
        return [(kind, why) for kind in both]
    found = [(kind, look(f, name)) for kind, look in LOOKS.items()]
    found = [
        (kind, why)
        for kind, why in (*found, of_a_norm(f, name))
        if why and len(needed(f)) <= MOST[kind]
    ]
    return sorted(
        found, key=lambda one: (one[1] == BY_NAME, not says(name, one[0]))
    )
