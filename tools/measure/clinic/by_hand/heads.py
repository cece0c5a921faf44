"""What blocks that are written by hand have in common: heads, and loops."""

import math

import torch

from tools.measure.clinic.by_hand.pieces import (
    mixture,
    part_of,
    piece,
    shares,
    squashed,
)


def all_seen(x, n_texts, n_q, n_k):
    """(texts, queries, keys), all True, where x is."""
    shape = n_texts, n_q, n_k
    return torch.ones(shape, dtype=torch.bool, device=x.device)


def all_past(x, n_texts, n):
    """The same, but nobody sees what comes later."""
    return all_seen(x, n_texts, n, n).tril()


def token_by_token(say, seen):
    """What is said in a text, by its number, to a query that sees a row."""
    texts = []
    for text, rows in enumerate(seen):
        said = [say(text, i, row) for i, row in enumerate(rows)]
        texts.append(torch.stack(said))
    return torch.stack(texts)


def heard(q, keys, values, seen, n_heads, nothing=0.0, added=None):
    """What all heads say to a query, side by side.

    Args:
        q: of all heads, one after another, as keys and values are.
        keys: one for each token.
        values: one for each token.
        seen: which of the tokens the query sees.
        n_heads: into so many parts all is cut.
        nothing: what each value counts for who sees nobody.
        added: a number for each token, to be added to its scores.
    """
    added = torch.zeros(len(keys)).to(q) if added is None else added
    heads = []
    for head in range(n_heads):
        mine, *theirs = (t.chunk(n_heads)[head] for t in (q, *keys))
        scores = [
            mine @ k / len(mine) ** 0.5 + more
            for k, more in zip(theirs, added, strict=True)
        ]
        if seen.any():
            weights = shares(scores, seen)
        else:
            weights = torch.full_like(torch.stack(scores), nothing)
        values_here = [v.chunk(n_heads)[head] for v in values]
        heads.append(mixture(weights, values_here))
    return torch.cat(heads)


def each_head(change, x, n_heads):
    """Features of all heads, those of each changed alone."""
    return torch.cat([change(part) for part in x.chunk(n_heads)])


def asked(mha, x, others, seen, n_heads):
    """What a layer of PyTorch's own says to x, who sees some others."""
    W, b = mha.in_proj_weight, mha.in_proj_bias
    ask, offer, tell = (part_of(W, b, part, 3) for part in range(3))
    keys, values = [offer(y) for y in others], [tell(y) for y in others]
    said = heard(ask(x), keys, values, seen, n_heads, math.nan)
    return piece(mha.out_proj)(said)


def slide(conv, x, i, first):
    """What a convolution says at i, whose first number meets i + first."""
    said = conv.bias
    for step in range(conv.weight.shape[-1]):
        at = i + first + step
        if 0 <= at < len(x):
            W = conv.weight[:, :, step]
            said = said + (W @ x[at] if conv.groups == 1 else W[:, 0] * x[at])
    return said


def swished(x):
    """Numbers times how open a gate is that they open themselves."""
    return x * squashed(x)


def highway(gate, old, new):
    """As much of what is new as a gate lets in, and of the old the rest."""
    share = squashed(piece(gate)(old))
    return share * new + (1 - share) * old
