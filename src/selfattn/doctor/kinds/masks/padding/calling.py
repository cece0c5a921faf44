"""How makers of padding masks are called, and what their masks say."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import patient, sayings
from selfattn.doctor.exercise import UnusableError
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.mask_meanings import OF_A_MAKER, as_ours
from selfattn.doctor.kinds.masks import arguments
from selfattn.doctor.patient import Facts, parameters

PAD = 0
MADE_OF = ("lengths", "tokens", "ones")
TOKENS = ("tok", "seq", "ids", "src", "text", "input", "batch", "word")
LENGTHS = {"lens", "lengths", "sizes", "counts"}
WIDTHS = {"n", "max", "maximum", "total", "width", "t", "longest"}
NO_SIZES = {"device", "dtype"}
NO_WIDTH = "of lengths alone nobody can tell how wide the batch is"

FACTS = {
    "mask": Fact("what the mask says", OF_A_MAKER),
    "axes": Fact(
        "the axes of the mask",
        {
            "B11N": "batch, heads, queries, keys",
            "B1N": "batch, queries, keys",
            "BN": "batch, keys",
            "BNN": "batch, queries, keys, with as many queries as keys",
            "B1NN": "batch, heads, queries, keys, with as many queries",
        },
    ),
    "of": Fact(
        "what it is made of",
        {
            "lengths": "lengths and n",
            "tokens": "tokens, and the padding",
            "ones": "a table, 1 for each token and 0 for padding",
        },
    ),
    "pad": Fact(
        "the number that stands for padding; 0 when not said",
        saying=sayings.WHOLE,
    ),
    "side": Fact(
        "on which side texts are padded",
        {"right": "at their ends", "left": "before their beginnings"},
        tried=False,
    ),
    "arguments": Fact(
        "how many arguments it takes, 1 or 2", saying=sayings.ONE_OR_TWO
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """What each argument is, by its name; whether it is told a width."""
    names = parameters(thing)
    if not names:
        return Reading()
    roles = roles_of(thing, told)
    by_name = arguments.without_place(thing, roles)
    seen: dict[str, Any] = {"roles": roles, "by name": by_name}
    if told.get("arguments") is None:
        seen["arguments"] = min(len(names), 2)
    of = {*roles.values()} & {*MADE_OF}
    if len(of) == 1:
        seen["of"] = of.pop()
    pad = shown_pad(thing, roles)
    if pad is not None and told.get("pad") is None:
        seen["pad"] = pad
    alone = {*roles.values()} - NO_SIZES == {"lengths"}
    return Reading(seen, lacks={"width": NO_WIDTH} if alone else {})


def roles_of(thing: Any, told: Facts) -> dict[str, str]:
    """What each of its arguments is; of those left out, only what is ours."""
    found = {}
    for p in trial_calls.listed(thing):
        what = role(p.name)
        if p.default is p.empty or what in ("width", "pad"):
            found[p.name] = what
    first = next(iter(found), None)
    if first and found[first] == "" and told.get("of"):
        found[first] = told["of"]
    many = told.get("arguments") or len(found)
    return dict([*found.items()][:many])


def role(name: str) -> str:
    """What an argument of this name is; "" if the name does not tell."""
    lower = name.lower()
    words = {*lower.split("_")}
    if "pad" in lower:
        return "ones" if "mask" in lower else "pad"
    if arguments.role(name) in ("device", "dtype"):
        return arguments.role(name)
    if words & WIDTHS or lower in ("maxlen", "seqlen"):
        return "width"
    if "len" in lower or words & LENGTHS:
        return "lengths"
    if "mask" in lower:
        return "ones"
    if any(lower.startswith(word) for word in TOKENS):
        return "tokens"
    return "x" if lower in ("x", "xs", "inputs", "hidden") else ""


def shown_pad(thing: Any, roles: Mapping[str, str]) -> int | None:
    """The number that it shows to take for padding: no other is like it."""
    if len(roles) != 1 or "lengths" in roles.values():
        return None
    numbers = torch.arange(8)[None]
    made = trial_calls.as_tensor(
        trial_calls.outcome(patient.handed, thing, numbers)
    )
    if not isinstance(made, Tensor) or made.shape[-1:] != (8,):
        return None
    row = made.reshape(-1, 8)[0]
    odd = [i for i in range(8) if int((row == row[i]).sum()) == 1]
    return odd[0] if len(odd) == 1 and odd[0] != PAD else None


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with lengths or tokens; give its mask our axes and meaning."""
    side = facts.get("side") or "right"

    def padding(lengths: Tensor, n: int) -> object:
        if of_lengths_alone(facts) and n != int(lengths.max()):
            raise UnusableError(NO_WIDTH)
        mask = trial_calls.as_tensor(handed(thing, facts, lengths, n))
        if isinstance(mask, Tensor):
            mask = in_our_axes(mask, facts["axes"])
            mask = mask.flip(-1) if side == "left" and mask.ndim else mask
        return as_ours(mask, facts["mask"])

    return padding


def of_lengths_alone(facts: Facts) -> bool:
    """Whether it is handed lengths, and nothing that tells of a width."""
    roles = {*roles_in(facts).values()} - NO_SIZES
    if roles and "" not in roles:
        return roles == {"lengths"}
    return facts["of"] == "lengths" and facts.get("arguments", 2) == 1


def roles_in(facts: Facts) -> dict[str, str]:
    """What each argument is; what it is made of comes first, if unnamed."""
    roles = {**facts.get("roles", {})}
    if not any(one in MADE_OF for one in roles.values()):
        first = next((n for n, one in roles.items() if one in ("", "x")), None)
        if first is not None:
            roles[first] = facts["of"]
    return roles


def handed(thing: Any, facts: Facts, lengths: Tensor, n: int) -> Any:
    """What it makes of what it is handed, each by its role."""
    real = torch.arange(n) < lengths[:, None]
    real = real.flip(-1) if facts.get("side") == "left" else real
    pad = PAD if facts.get("pad") is None else facts["pad"]
    tokens = (torch.arange(n) % 5 + pad + 1).where(real, torch.tensor(pad))
    values = {
        "lengths": lengths,
        "tokens": tokens,
        "ones": real.long(),
        "width": n,
        "pad": pad,
        "x": torch.ones(len(lengths), n, 4),
        "device": "cpu",
        "dtype": torch.float32,
    }
    roles = roles_in(facts)
    if roles and "" not in roles.values():
        given = {name: values[one] for name, one in roles.items()}
        named = {name: given.pop(name) for name in facts["by name"]}
        return patient.handed(thing, *given.values(), **named)
    second = pad if facts["of"] == "tokens" else n
    both = (values[facts["of"]], second)
    return patient.handed(thing, *both[: facts.get("arguments", 2)])


def in_our_axes(mask: Tensor, axes: str) -> Tensor:
    """A mask, (batch, heads, queries, keys); queries alike are one."""
    if axes == "BN" and mask.ndim == 2:
        return mask[:, None, None]
    if axes in ("B1N", "BNN") and mask.ndim == 3:
        mask = mask[:, None]
    if axes in ("BNN", "B1NN") and mask.ndim == 4:
        alike = mask.shape[-2] > 1 and bool((mask == mask[..., :1, :]).all())
        return mask[..., :1, :] if alike else mask
    return mask
