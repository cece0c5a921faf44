"""A bank's: a partial of a function, which keeps its books in doubles."""

import functools

import torch


def keeps_books_in(dtype):
    """All is counted in this type, and handed back in its own."""

    def wrap(function):
        @functools.wraps(function)
        def counted(returns, *tables, **options):
            exact = (t.to(dtype) for t in (returns, *tables))
            return function(*exact, **options).to(returns.dtype)

        return counted

    return wrap


@keeps_books_in(torch.float64)
def standardise(returns, a_2, b_2, *, axis, floor):
    width = returns.shape[axis]
    excess = returns - returns.sum(axis, keepdim=True) / width
    risk = torch.sqrt((excess**2).sum(axis, keepdim=True) / width + floor)
    sharpe = torch.addcdiv(torch.zeros_like(excess), excess, risk)
    return torch.addcmul(sharpe + b_2, sharpe, a_2)


PATIENT = functools.partial(standardise, axis=-1, floor=1e-12)
FACTS = {
    "eps": 1e-12,
    "gain": "one plus",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"returns": "b n d", "a_2": "d", "b_2": "d"}
OTHER_INPUTS = ({"returns": "b h n d", "a_2": "d", "b_2": "d"},)
