"""Functional style: written for one query, then mapped over all by vmap."""

import functools

import torch
from torch.func import vmap


def over(in_dims, out_dim=0):
    """A decorator that maps over axes, given as letters or dots."""
    dims = tuple(None if c == "." else int(c) for c in in_dims)

    def wrap(fn):
        mapped = vmap(fn, in_dims=dims, out_dims=out_dim)
        return functools.wraps(fn)(mapped)

    return wrap


def one_query(query, keys, values, forbidden):
    """query: (d,), keys: (m, d), values: (m, e), forbidden: (m,)"""
    energies = (keys * query).sum(-1) * query.numel() ** -0.5
    energies = torch.where(forbidden, -torch.inf, energies)
    shifted = energies - energies.amax().detach()
    portions = shifted.exp()
    return portions @ values / portions.sum()


one_text = over("0..0")(one_query)  # over queries
one_layer = over("000.", out_dim=1)(one_text)  # heads, behind tokens
a_batch = over("0000")(one_layer)


def attend(*, queries, keys, values, forbidden=None):
    """(batch, head, token, width) goes in, tokens come out before heads."""
    if forbidden is None:
        b, n, m = queries.shape[0], queries.shape[2], keys.shape[2]
        forbidden = torch.zeros(
            b, n, m, dtype=torch.bool, device=queries.device
        )
    return a_batch(queries, keys, values, forbidden)


PATIENT = attend
FACTS = {
    "layout": "BHND to BNHD",
    "mask": "block",
    "mask_axes": "BNN",
    "names": {
        "q": "queries",
        "k": "keys",
        "v": "values",
        "mask": "forbidden",
    },
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "queries": "b h n d",
    "keys": "b h m d",
    "values": "b h m e",
    "forbidden?": "block b n m",
}
