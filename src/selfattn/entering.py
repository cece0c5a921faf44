"""Entering: what a layer is handed, and what functions make for it.

As in `checks`, errors say the rule first, and then what breaks it. What is
asked of others' functions and modules is asked when they answer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.bound import Bound, is_of_the_book, parameters_of, unbound
from selfattn.called import answered, check_function, check_signature
from selfattn.checks import (
    are_at_hand,
    check_floats,
    check_places,
    check_tensor,
    is_autocast,
)
from selfattn.mismatches import check_filled, weights_to_meet
from selfattn.signatures import shown
from selfattn.spoilt import a_token_each, spared, unheard


def check_width(name: str, x: Tensor, width: int) -> None:
    """Raise unless x has as many features as what it enters takes."""
    check_floats(name, x)
    if x.shape[-1:] != (width,):
        raise ValueError(
            f"{name} must have {width} features, (..., {width}), but it is "
            f"{tuple(x.shape)}"
        )


def check_enters(name: str, x: Tensor, layer: nn.Module | Tensor) -> None:
    """Raise unless x has the features and the type that a matrix takes, and
    is where the matrix is.

    Of a layer its parameters are asked, and not for its weight: pruned or
    normed, that is made anew in the call; quantised, it is none.
    """
    width = layer.shape[-1] if isinstance(layer, Tensor) else None
    for takes in ("in_features", "in_channels", "input_size"):
        width = getattr(layer, takes, width)
    if not width:  # nor has one that learns its sizes at its first call
        check_floats(name, x)
    else:
        check_width(name, x, width)
    check_meets(name, x, layer)


def check_meets(name: str, x: Tensor, layer: nn.Module | Tensor) -> None:
    """Raise unless x has the type of a layer's weights, and is where they
    are; a layer without parameters takes what it takes. Of somebody's own,
    one weight has to be so: the others may be an adapter's.
    """
    weights = weights_to_meet(layer)
    if not weights:
        return
    near = [w for w in weights if w.device == x.device] or weights
    check_at_layer(name, x, near[0])
    if isinstance(layer, nn.Module):
        check_filled(layer, x)
    weight = next((w for w in near if w.dtype == x.dtype), near[0])
    # Autocast leaves numbers of float64 as they are.
    casts = is_autocast(x) and torch.float64 not in (x.dtype, weight.dtype)
    if x.dtype != weight.dtype and not casts:
        raise ValueError(
            f"{name} must have the type of the layer, {weight.dtype}, but it "
            f"is {tuple(x.shape)} of {x.dtype}"
        )


def check_at_layer(name: str, x: Tensor, weight: Tensor) -> None:
    """Raise unless x is where the layer's weights are."""
    check_places(**{"the layer": weight, name: x})


def check_matrices(layer: Any) -> None:
    """Raise unless the four matrices of a layer fit its heads: somebody may
    have put another in the place of one.

    What does not say its sizes, as one that is quantised, is not asked; nor
    is one that learns them at its first call.
    """
    matrices, d_model = layer._modules, layer.d_model
    heads, kept = layer.n_heads * layer.d_head, layer.n_kv_heads * layer.d_head
    k, v = (getattr(matrices.get(n), "in_features", 0) for n in ("W_k", "W_v"))
    d_context = k if k == v else layer.d_context  # both may be of another
    for name, takes, makes in (
        ("W_q", d_model, heads),
        ("W_k", d_context, kept),
        ("W_v", d_context, kept),
        ("W_o", heads, d_model),
    ):
        matrix = matrices.get(name)
        found = getattr(matrix, "in_features", takes) or takes
        if found == takes and getattr(matrix, "out_features", makes) == makes:
            continue
        raise ValueError(
            f"{name} must be given {takes} features and make {makes}, for "
            f"n_heads={layer.n_heads}, n_kv_heads={layer.n_kv_heads} and "
            f"d_head={layer.d_head}, but it is {matrix!r:.200}"
        )


def check_four_axes(name: str, kept: Any) -> None:
    """Raise unless keys and values are tensors of heads, not of anything."""
    for part, x in kept._asdict().items():
        check_tensor(f"{name}.{part}", x)
        if x.ndim != 4:
            raise ValueError(
                f"{name}.{part} must have axes (batch, n_kv_heads, n_k, "
                f"d_head), but it is {tuple(x.shape)}"
            )


def look_up(name: str, tokens: Tensor, table: nn.Embedding) -> Tensor:
    """The rows of a table, one a token; a token without one is named.

    Somebody may have put another layer in its place, as one that makes one
    row of a whole text.
    """
    # A table that is made anew at every call is not made for a look.
    check_at_layer(name, tokens, [*weights_to_meet(table), tokens][0])
    try:
        rows = table(spared(table, tokens.long()))
    except IndexError:
        told = "some are not, of several texts as torch.func has them"
        if are_at_hand(tokens):
            told = f"they go from {int(tokens.min())} to {int(tokens.max())}"
        raise ValueError(
            f"{name} must be numbers from 0 to {table.num_embeddings - 1}, "
            f"but {told}"
        ) from None
    return a_token_each(table, rows, tokens[..., None])


def check_unbound(attend: object, *names: str) -> None:
    """Raise if a mechanism binds what its caller hands over at each call.

    What the caller hands over would override what `functools.partial` bound,
    without a word; a mechanism meant to be causal would see the future.
    """
    while isinstance(attend, partial | Bound):
        for name in names:
            if name in attend.keywords:
                raise ValueError(
                    f"{', '.join(names)} are handed over at each call and "
                    f"cannot be bound beforehand, but attend binds {name}"
                )
        attend = attend.func
    check_function("attend", attend)


def check_axes(**tables: Tensor | None) -> None:
    """Raise if a table has three axes: the first could be batch or heads."""
    for name, table in tables.items():
        if table is not None and table.ndim == 3:
            raise ValueError(
                f"{name} must be (n_q, n_k) or broadcast to (batch, n_heads, "
                f"n_q, n_k) with four axes, but it is {tuple(table.shape)}; "
                f"write {name}[:, None] if its first axis is the batch"
            )


def made_by(name: str, factory: Callable[..., Any], *sizes: int) -> nn.Module:
    """What a factory makes from these sizes, which must be a module.

    Raises:
        TypeError: for a module where one is to be made, or for what is none;
            or if it cannot be called with these sizes.
    """
    if isinstance(factory, nn.Module):
        raise TypeError(
            f"{name} must make a module from {sizes}, like a class, but it is "
            f"one already: {shown(factory)}"
        )
    made = answered(name, factory, *sizes)
    if not isinstance(made, nn.Module):
        raise TypeError(
            f"{name} must make a module from {sizes}, but it made "
            f"{shown(made)}"
        )
    return made


def attended(
    attend: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **tables: Any
) -> Tensor:
    """What a mechanism gives: for each query, what values are made of.

    Raises:
        TypeError: if it gives no tensor, or cannot be called so.
        ValueError: if it gives one of another shape or type.
    """
    tables = dict(zip(tables, lent(attend, *tables.values()), strict=True))
    try:
        output = attend(q, k, v, **tables)
    except TypeError:
        function, bound = unbound(attend)
        if "dropout_p" in bound:  # it may have been set later
            check_drops(function, bound["dropout_p"])
        check_signature("attend", attend, "q", "k", "v", named=(*tables,))
        raise
    check_floats("what attend returns", output)
    if output.shape != (*q.shape[:-1], v.shape[-1]):
        raise ValueError(
            "attend must return (..., n_q, d_v) = "
            f"{(*q.shape[:-1], v.shape[-1])}, but it returned "
            f"{tuple(output.shape)}"
        )
    check_type("attend", output, v)
    return output


def lent(attend: Any, *given: Any) -> tuple[Any, ...]:
    """What is the caller's, as a mechanism is to have it: in copies, if it is
    somebody's own, which may write into what it is given.
    """
    # While PyTorch compiles, nobody can ask whose it is.
    traced = torch.compiler.is_compiling()
    if not traced and is_of_the_book(unbound(attend)[0]):
        return given
    return tuple(x.clone() if isinstance(x, Tensor) else x for x in given)


def check_drops(attend: Any, dropout: float) -> None:
    """Raise unless a mechanism can drop weights, if it is to."""
    if dropout and "dropout_p" not in (parameters_of(attend) or ()):
        raise ValueError(
            "dropout of weights needs a mechanism that takes dropout_p, "
            f"but dropout={dropout} and attend={attend}"
        )


def check_type(name: str, made: Tensor, x: Tensor) -> None:
    """Raise unless what was made of x has its type, or autocast chooses."""
    if made.dtype != x.dtype and not is_autocast(x):
        raise ValueError(
            f"{name} must return numbers of the type it is given, {x.dtype}, "
            f"but it returned {made.dtype}"
        )


def weighed(weigh: Any, q: Tensor, k: Tensor, **tables: Any) -> Tensor:
    """What a mechanism says its weights are; what it is given is lent.

    Raises:
        TypeError: if they are no tensor, or it cannot be asked for them.
        ValueError: if they are not those of all queries for all keys.
    """
    k, *given = lent(weigh, k, *tables.values())
    told = dict(zip(tables, given, strict=True))
    weights = answered("attend.weights", weigh, q, k, **told)
    check_floats("what attend.weights returns", weights)
    wanted = (*q.shape[:-1], k.shape[-2])
    if weights.shape != wanted:
        raise ValueError(
            f"attend.weights must return (..., n_q, n_k) = {wanted}, but it "
            f"returned {tuple(weights.shape)}"
        )
    return weights


def mixed(name: str, project: Callable[[Tensor], Any], x: Tensor) -> Tensor:
    """What a projection makes of tokens: mixtures, as wide as they are. To
    its weights a sequence that holds what is spoilt passes nothing back.

    Raises:
        TypeError: if it makes no tensor, or cannot be called with one.
        ValueError: if that is none of mixtures: those of one sequence would
            be broadcast to all, and nothing said.
    """
    check_function(name, project)
    return unheard(partial(mixtures_of, name, project), x, (-2, -1))


def mixtures_of(
    name: str, project: Callable[[Tensor], Any], x: Tensor
) -> Tensor:
    """The same, felt by all weights."""
    made = answered(name, project, x)
    check_floats(f"what {name} makes", made)
    others, found = ((*y.shape[:-2], y.shape[-1]) for y in (x, made))
    none = 0 in made.shape[-2:-1] and x.shape[-2] > 0
    if made.ndim != x.ndim or found != others or none:
        raise ValueError(
            f"{name} must make (..., n, d) into (..., m, d), m at least 1, "
            f"but it made {tuple(x.shape)} into {tuple(made.shape)}"
        )
    check_type(name, made, x)
    check_places(**{"x": x, f"what {name} makes": made})
    return made


def made_alike(
    name: str, function: Callable[..., Any], x: Tensor, **options: Any
) -> Tensor:
    """What a function makes of x: as many numbers, of the same type.

    Raises:
        TypeError: if it makes no tensor, or cannot be called so.
        ValueError: if it makes one of another shape or type.
    """
    check_function(name, function)
    made = answered(name, function, x, **options)
    check_floats(f"what {name} makes", made)
    if made.shape != x.shape:
        raise ValueError(
            f"{name} must return the shape it is given, but x is "
            f"{tuple(x.shape)} and it made {tuple(made.shape)}"
        )
    check_type(name, made, x)
    return made


def check_numbers(name: str, made: Any, x: Tensor) -> None:
    """Raise unless what was made can be taken to where x is: from another
    device it can, from meta, where there are no numbers, it cannot.
    """
    check_floats(name, made)
    if made.is_meta and not x.is_meta:
        raise ValueError(
            f"{name} must hold numbers, for they are added to others on "
            f"{x.device}, but it is {shown(made)} on meta"
        )


def check_same_shape(name: str, made: Any, x: Tensor) -> None:
    """Raise unless what was made of x can be added to it."""
    check_floats(f"what {name} makes", made)
    if made.shape != x.shape:
        raise ValueError(
            f"a {name} must return the shape it is given, but x is "
            f"{tuple(x.shape)} and it made {tuple(made.shape)}"
        )
    check_places(**{"x": x, f"what {name} makes": made})
    # What has fewer digits can be added, and x stays what it is.
    if torch.promote_types(made.dtype, x.dtype) != x.dtype:
        check_type(f"a {name}", made, x)
