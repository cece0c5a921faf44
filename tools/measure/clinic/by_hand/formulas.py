"""What sound patients compute, once more and plainly, in float64.

The patients' own words for their inputs, such as "b n h d", tell which axis
is which; so one formula does for all layouts.
"""

import math

import torch
import torch.nn.functional as F

ROLES = {"b": 0, "h": 1, "g": 1, "n": 2, "m": 2, "d": 3, "e": 3}


def role(word):
    """Which axis a word means: batch, heads, tokens or features."""
    letters = [c for c in word if c.isalpha()]
    return ROLES[letters[0]]


def laid_out(x, words):
    """A tensor as (batch, heads, tokens, features)."""
    roles = [role(word) for word in words.split()]
    order = sorted(range(len(roles)), key=roles.__getitem__)
    x = x.permute(order)
    for axis in range(4):
        if axis not in roles:
            x = x.unsqueeze(axis)
    return x


def laid_back(x, words):
    """A tensor (batch, heads, tokens, features) in these axes."""
    roles = [role(word) for word in words.split()]
    for axis in reversed(range(4)):
        if axis not in roles:
            x = x.squeeze(axis)
    kept = sorted(roles)
    return x.permute([kept.index(axis) for axis in roles])


def allowed(mask, words):
    """A mask as booleans that broadcast over (batch, heads, queries, keys)."""
    sort, *axes = words.split()
    if sort in ("block", "padding", "future"):
        mask = ~mask
    if sort == "add":
        mask = mask == 0
    if len(axes) == 3:
        return mask[:, None]
    if axes[0] == "b" and len(axes) == 2:
        return mask[:, None, None, :]
    return mask


def past(n_q, n_k, alignment):
    """Which keys a query may see that sees no later ones."""
    moved = n_k - n_q if alignment == "last" else 0
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return j <= i + moved


def near(facts, n_q, n_k):
    """Which keys a query may see of which there is a table or a window."""
    if "table" in facts:
        return facts["table"](n_q, n_k)
    far = (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs()
    return far < facts.get("window", math.inf)


def weights(scores, seen, empty):
    """Softmax over what is seen; what an empty row gets is a convention."""
    rows = scores.masked_fill(~seen, -math.inf).softmax(dim=-1)
    none = ~seen.any(dim=-1, keepdim=True)
    instead = {
        "zeros": torch.zeros_like(rows),
        "average": torch.full_like(rows, 1 / rows.shape[-1]),
        "everything": scores.softmax(dim=-1),
    }.get(empty, torch.full_like(rows, math.nan))
    return torch.where(none, instead, rows)


def attention(facts, inputs, given):
    """What an attention function of these facts gives."""
    names = list(inputs)
    words = [inputs[name] for name in names[:3]]
    q, k, v = (
        laid_out(given[name], axes)
        for name, axes in zip(names[:3], words, strict=True)
    )
    times = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(times, dim=1) for x in (k, v))
    seen = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2]).bool()
    if facts.get("causal") is True:
        seen = seen & past(*seen.shape[2:], "last")
    seen = seen & near(facts, *seen.shape[2:])
    scores, seen = told(facts, inputs, given, pairs(facts, q, k), seen)
    if "kernel" in facts:
        of_keys = facts.get("key_kernel", facts["kernel"])
        shares = facts["kernel"](q) @ of_keys(k).mT * seen
        out = shares / shares.sum(dim=-1, keepdim=True) @ v
    else:
        out = weights(scores, seen, facts.get("empty_row")) @ v
    if facts["layout"] == "BHND to BNHD":
        return out.transpose(1, 2)
    return laid_back(out, words[0])


def told(facts, inputs, given, scores, seen):
    """Scores, and what is seen, by all that is given behind q, k and v."""
    for name in list(inputs)[3:]:
        x, sort = given.get(name.rstrip("?")), inputs[name].split()[0]
        if x is None:
            continue
        if sort == "true":
            seen = seen & past(*seen.shape[2:], facts.get("alignment"))
        elif sort == "bias":
            scores = scores + x
        elif sort == "lengths":
            keys = torch.arange(seen.shape[3])
            seen = seen & (keys < x[:, None, None, None])
        else:
            seen = seen & allowed(x, inputs[name])
    return scores, seen


def pairs(facts, q, k):
    """The scores of each query with each key."""
    if facts.get("scores") == "cosine":
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    scores = torch.einsum("bhid,bhjd->bhij", q, k)
    scores = scores * facts.get("scale", 1 / math.sqrt(q.shape[-1]))
    if "cap" in facts:
        scores = facts["cap"] * torch.tanh(scores / facts["cap"])
    if "bias" in facts:
        scores = scores + facts["bias"](q.shape[1], *scores.shape[2:])
    return scores


def rotated(facts, x, start):
    """Pairs of features turned by their positions."""
    if facts.get("layout") in ("BNHD", "NHD"):
        inner = {**facts, "layout": "BHND"}
        return rotated(inner, x.transpose(-3, -2), start).transpose(-3, -2)
    width = int(x.shape[-1] * facts.get("part", 1))
    turned, kept = x[..., :width].clone(), x[..., width:]
    for i in range(width // 2):
        halves = facts["pairs"] == "halves"
        a, b = (i, i + width // 2) if halves else (2 * i, 2 * i + 1)
        for p in range(x.shape[-2]):
            angle = (start + p) * facts.get("base", 10000) ** (-2 * i / width)
            cos, sin = math.cos(angle), math.sin(angle)
            one, other = x[..., p, a], x[..., p, b]
            turned[..., p, a] = one * cos - other * sin
            turned[..., p, b] = one * sin + other * cos
    return torch.cat((turned, kept), dim=-1)


def waves(facts, n, d):
    """The table of sines and cosines."""
    table = torch.zeros(n, d, dtype=torch.float64)
    for p in range(n):
        for f in range(d):
            i, odd = f // 2, f % 2
            if facts["layout"] == "halves":
                i, odd = f % (d // 2), f // (d // 2)
            end = d - 2 if facts.get("ends") == "at 1" else d
            angle = p / 10000 ** (2 * i / end)
            table[p, f] = math.cos(angle) if odd else math.sin(angle)
    return table
