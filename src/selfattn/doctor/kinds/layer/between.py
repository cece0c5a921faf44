"""What stands between a layer's maps and its scores, and beside them.

Norms of queries and keys, a rotation by places, a bias that is learnt or goes
with the distance, a key that is no token, a gate: each is found in a module
by its shape and its name, and is a step that is done otherwise.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds.attention.formula import Formula
from selfattn.doctor.kinds.layer.entering import entries, in_any_type, size
from selfattn.doctor.kinds.layer.learnt import (
    distances,
    keys,
    maps,
    scores,
    ways_out,
)
from selfattn.doctor.kinds.layer.learnt.left_over import NOTHING, letters
from selfattn.doctor.kinds.layer.learnt.ways_out import joined
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.doctor.kinds.layer.rotations import turns
from selfattn.doctor.kinds.layer.steps import as_given
from selfattn.doctor.patient import handed
from selfattn.multihead import merge_heads, split_heads

BESIDE = {"before", "project", "more", "done", "gate", "end"}  # the scores
SLOPES = re.compile(r"slope|alibi|(?<![a-z])m(?![a-z])")


@dataclass(frozen=True, eq=False)
class Inner:
    """Steps that are found in a module, and a bias for its formula."""

    steps: dict[str, Any] = field(default_factory=dict)
    bias: Callable[[int, int, int], Tensor] | None = None
    turned: bool = False  # whether queries and keys turn by their places

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.steps or self.bias)

    @property
    def scores(self) -> bool:
        """Whether its scores are others, so that their scale may be, too."""
        return bool(self.bias or self.steps.keys() - BESIDE)

    def with_scale(self, scale: float) -> "Inner":
        """The same, with another scale."""
        step = {"scale": lambda width: scale}
        return Inner({**self.steps, **step}, self.bias, self.turned)

    def of(self, formula: Formula) -> Formula:
        """The formula, with this bias if it was told none."""
        if self.bias is None or formula.bias is not None:
            return formula
        return Formula(**{**vars(formula), "bias": self.bias})


def found(
    module: nn.Module, parts: Projections, cross: bool
) -> Iterator[Inner]:
    """All that may stand in a module, the likeliest first.

    What was learnt is used; only how it rotates may be read in many ways,
    and what it norms before it projects, and some numbers.
    """
    steps = sink(module, parts.n_heads)
    bias = of_tables(module, parts.n_heads)
    bias = bias or distances.of_each_head(module, parts)
    bias = bias or of_slopes(module, parts.n_heads)
    d = parts.q.W.shape[-1] // parts.n_heads
    pair = norms(module)
    both = tuple(by_heads(norm, d) for norm in pair)
    wide = parts.q.W.shape[0], parts.k.W.shape[0]
    ways = [*entries(module, *wide, cross)]
    for turn, enter, *more in product(
        turns(module, d), ways, *learnt(module, parts, pair, both, cross)
    ):
        inner = {**steps, **joined(more)}
        first = inner.pop("before", None)
        if both or turn:
            inner["inner"] = with_inner(both, turn)
        if enter:
            inner["before"] = enter
        if first:
            inner["before"] = after_another(enter, first)
        yield Inner(inner, bias, turn is not None)


def learnt(
    module: nn.Module,
    parts: Projections,
    pair: Sequence[nn.Module],
    both: Sequence[Any],
    cross: bool,
) -> list[Sequence[dict[str, Any]]]:
    """Of each thing that may be learnt besides, what it may stand for."""
    usual = (distances.tables, maps.convolved, scores.sigmoids)
    others = (scores.talking, scores.sums_of_both, scores.temperatures)
    learnt_keys = keys.of_no_token(module, parts, both)
    if learnt_keys is NOTHING:
        learnt_keys = keys.of_x_too(parts, cross)
    return [
        ways_out.leaving(module, parts, pair),
        learnt_keys,
        *(one(module, parts) for one in (*usual, *others, ways_out.gates)),
    ]


def after_another(enter: Any, then: Any) -> Any:
    """What is done before maps: a norm, if there is one, and something."""

    def before(x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        pair: tuple[Tensor, Tensor] = then(*(enter or as_given)(x, context))
        return pair

    return before


def with_inner(both: Any, turn: Any) -> Callable[..., tuple[Tensor, Tensor]]:
    """Queries and keys, normed and turned if they are."""

    def inner(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        if both:
            q, k = (one(x) for one, x in zip(both, (q, k), strict=True))
        if turn:
            q, k = turn(q), turn(k)
        return q, k

    return inner


def norms(module: nn.Module) -> tuple[nn.Module, ...]:
    """A norm for queries and one for keys; none, if there are no such."""
    listed = [
        (name.lower(), part)
        for name, part in module.named_modules()
        if name and is_norm(part)
    ]
    pair = []
    for letter in "qk":
        own = [part for name, part in listed if letter in letters(name)] or [
            part for name, part in listed if "qk" in name
        ]
        if not own:
            return ()
        pair.append(own[0])
    return tuple(pair)


def by_heads(norm: nn.Module, d: int) -> Callable[[Tensor], Tensor]:
    """A norm of (…, n_heads, n, d), a head at a time, or of all features."""
    call, every = in_any_type(norm), size(norm)

    def normed(x: Tensor) -> Tensor:
        if every in (0, d):
            return call(x)
        return split_heads(call(merge_heads(x)), x.shape[-3])

    return normed


def sink(module: nn.Module, n_heads: int) -> dict[str, Any]:
    """A softmax over the keys and one number more, if each head has one."""
    for name, x in module.named_parameters():
        if "sink" in name and x.numel() == n_heads:
            return {"weigh": with_sink(x.detach().flatten())}
    return {}


def with_sink(extra: Tensor) -> Callable[[Tensor], Tensor]:
    """A softmax over the keys, and over one that brings nothing."""

    def weigh(scores: Tensor) -> Tensor:
        one = extra.to(scores)[:, None, None].expand_as(scores[..., :1])
        return torch.cat((scores, one), -1).softmax(-1)[..., :-1]

    return weigh


def of_tables(
    module: nn.Module, n_heads: int
) -> Callable[[int, int, int], Tensor] | None:
    """What a table with a number for each head adds, seen as it is called."""
    tables = [
        part
        for part in module.modules()
        if isinstance(part, nn.Embedding) and part.embedding_dim == n_heads
    ]
    if len(tables) != 1:
        return None
    known: dict[int, Tensor] = {}

    def bias(heads: int, n_q: int, n_k: int) -> Tensor:
        if n_k not in known:
            known[n_k] = as_called(module, tables[0], n_k)
        return known[n_k][..., -n_q:, :]

    return bias


def as_called(module: nn.Module, table: nn.Module, n: int) -> Tensor:
    """What a table gives, (n_heads, n, n), while n tokens are read."""
    seen: list[Tensor] = []
    hook = table.register_forward_hook(
        lambda part, given, output: seen.append(output.detach())
    )
    width = next(x.shape[-1] for x in module.parameters() if x.ndim == 2)
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    width = linear[0].in_features if linear else width
    try:
        with torch.no_grad():
            handed(module, torch.zeros(1, n, width))
    finally:
        hook.remove()
    return seen[0].reshape(n, n, -1).movedim(-1, 0)


def of_slopes(
    module: nn.Module, n_heads: int
) -> Callable[[int, int, int], Tensor] | None:
    """Minus the distance times a slope for each head, if there are slopes."""
    for name, x in named_numbers(module):
        fits = x.numel() == n_heads and x.is_floating_point()
        if SLOPES.search(name) and fits and bool(x.min() > 0):
            return by_distance(x.detach().flatten())
    try:
        text = inspect.getsource(type(module)).lower()
    except (OSError, TypeError):
        text = ""
    if "alibi" in text:
        steps = torch.arange(1, n_heads + 1)
        return by_distance(2.0 ** (-8.0 * steps / n_heads))
    return None


def named_numbers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a module and its parts, with their names."""
    for part in module.modules():
        held = {**vars(part), **part._buffers, **part._parameters}
        for name, x in held.items():
            if isinstance(x, Tensor) and x.numel() and is_real(x):
                yield name.lower(), x


def is_real(x: Tensor) -> bool:
    """Whether something is numbers with a point in them, complex ones too."""
    return x.is_floating_point() or x.is_complex()


def by_distance(slopes: Tensor) -> Callable[[int, int, int], Tensor]:
    """What each head takes off for each step of distance."""

    def bias(heads: int, n_q: int, n_k: int) -> Tensor:
        i = torch.arange(n_q)[:, None] + n_k - n_q
        far = (i - torch.arange(n_k)).abs()
        return -slopes[:, None, None] * far

    return bias
