"""`leaks(attend, q, k, v)`: whether the past moves when the future does.

Here the answer is a check, and the probes are patients: attention functions
that are causal, and some that are not.
"""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe, Sizes
from selfattn.dot_product import attention

LAST = 500.0  # how loud a future is that no rounding can hide


def causal(q, k, v):
    """Attention that looks at nothing later."""
    return attention(q, k, v, causal=True)


def late(q, k, v):
    """What is forbidden is wiped out after the softmax."""
    rows = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return rows.tril() @ v


def shared_anew(q, k, v):
    """The same, and what is left is shared out."""
    rows = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1).tril()
    return rows / rows.sum(dim=-1, keepdim=True) @ v


def zero_times_infinity(q, k, v):
    """Exponentials are multiplied by a mask of ones and zeros."""
    powers = (q @ k.mT / q.shape[-1] ** 0.5).exp()
    powers = powers * torch.ones_like(powers).tril()
    return powers / powers.sum(dim=-1, keepdim=True) @ v


def one_step_ahead(q, k, v):
    """Each query sees the key behind its own, too."""
    n = len(q)
    mask = torch.ones(n, n, dtype=torch.bool).tril(diagonal=1)
    return attention(q, k, v, mask=mask)


def mean_of_all(q, k, v):
    """Causal attention, of values less their mean over the whole text."""
    return causal(q, k, v - v.mean(dim=0))


def queries_of_all(q, k, v):
    """Causal attention, of queries less their mean over the whole text."""
    return causal(q - q.mean(dim=0), k, v)


def sees_the_last(q, k, v):
    """The second query alone sees the last key."""
    n = len(q)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    mask[1:2, -1] = True
    return attention(q, k, v, mask=mask)


def sees_by_the_way(q, k, v):
    """The third query alone sees the fourth key."""
    n = len(q)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    mask[2:3, 3:4] = True
    return attention(q, k, v, mask=mask)


def patient(attend):
    """What hands a patient to the answer, whatever the sizes."""

    def given(sizes: Sizes):
        return attend

    return given


def probe(asks, attend, sizes=None):
    """A check is run on one patient; seven tokens."""
    qkv = {"q": "n d", "k": "n d", "v": "n d_v"}
    inputs = {"attend": patient(attend), **qkv}
    return Probe(asks, inputs, {"n": 7, **(sizes or {})}, fixed=("n",))


def leaks(attend, q, k, v):
    """Change the future, loudly, and look at the past: at every place."""
    before = attend(q, k, v)
    for t in range(1, len(q)):
        q_new, k_new, v_new = q.clone(), k.clone(), v.clone()
        for x in (q_new, k_new, v_new):
            x[t:] = LAST * x[t:].flip(-1)
        after = attend(q_new, k_new, v_new)
        if not torch.equal(after[:t], before[:t]):
            return True
    return False


def moved(attend, q, k, v, t, change, tolerance=0.0):
    """Whether what comes before t moves by more when a future is changed."""
    before = attend(q, k, v)[:t]
    q, k, v = q.clone(), k.clone(), v.clone()
    change(q, k, v, t)
    return bool(((attend(q, k, v)[:t] - before).abs() > tolerance).any())


def everything(q, k, v, t):
    """Another future, and a loud one."""
    for x in (q, k, v):
        x[t:] = LAST * x[t:].flip(-1)


def somewhere(attend, q, k, v, change, tolerance=0.0):
    """Whether anything moves, wherever the future may begin."""
    return any(
        moved(attend, q, k, v, t, change, tolerance) for t in range(1, len(q))
    )


@mistake
def nan_does_not_count(attend, q, k, v):
    """You let NaN pass.

    Cause: NaN is not larger than anything, so `moved > 0` is false.
    Cure: Ask for equality, torch.equal, and say that it leaks otherwise.
    """
    return somewhere(attend, q, k, v, everything)


@mistake
def values_only(attend, q, k, v):
    """You miss what leaks through keys or queries.

    Cause: Only the values of the future are changed.
    Cure: Change queries, keys and values: weights leak, too.
    """

    def change(q, k, v, t):
        v[t:] = LAST * v[t:].flip(-1)

    return somewhere(attend, q, k, v, change)


@mistake
def keys_only(attend, q, k, v):
    """You miss what leaks through values or queries.

    Cause: Only the keys of the future are changed.
    Cure: Change queries, keys and values.
    """

    def change(q, k, v, t):
        k[t:] = LAST * k[t:].flip(-1)

    before = attend(q, k, v)
    for t in range(1, len(q)):
        other = k.clone()
        change(q, other, v, t)
        if not torch.equal(attend(q, other, v)[:t], before[:t]):
            return True
    return False


@mistake
def a_quiet_future(attend, q, k, v):
    """You miss a leak that only a loud future shows.

    Cause: The changed tokens are as quiet as the others, and a tolerance
        takes what moves for rounding.
    Cure: Make the future some hundred times larger, and ask for equality.
    """

    def change(q, k, v, t):
        for x in (q, k, v):
            x[t:] = x[t:].flip(-1)

    return somewhere(attend, q, k, v, change, tolerance=1e-4)


@mistake
def the_last_token_only(attend, q, k, v):
    """You miss what looks ahead, but not as far as the end.

    Cause: Only the last token is changed.
    Cure: Let the future begin at every place in turn.
    """
    t = len(q) - 1
    before = attend(q, k, v)[:t]
    q, k, v = q.clone(), k.clone(), v.clone()
    everything(q, k, v, t)
    return not torch.equal(attend(q, k, v)[:t], before)


@mistake
def the_first_token_only(attend, q, k, v):
    """You miss leaks into all tokens but the first.

    Cause: Only the first output is looked at.
    Cure: Let the future begin at every place, and look at all before it.
    """
    before = attend(q, k, v)[:1]
    q, k, v = q.clone(), k.clone(), v.clone()
    everything(q, k, v, 1)
    return not torch.equal(attend(q, k, v)[:1], before)


@mistake
def the_present_counted_as_past(attend, q, k, v):
    """You find a leak where there is none.

    Cause: The outputs that are compared include the changed token's own,
        which may move: it sees itself.
    Cure: If tokens from t on change, compare [:t].
    """
    before = attend(q, k, v)
    for t in range(1, len(q)):
        new = q.clone(), k.clone(), v.clone()
        everything(*new, t)
        if not torch.equal(attend(*new)[: t + 1], before[: t + 1]):
            return True
    return False


@mistake
def the_other_way_round(attend, q, k, v):
    """You say that it leaks where it does not.

    Cause: The past is unchanged, and that was taken for a leak.
    Cure: Return True where something has moved.
    """
    return not leaks(attend, q, k, v)


@mistake
def shape_only(attend, q, k, v):
    """You find no leak at all.

    Cause: Only the shape of the output is looked at.
    Cure: Compare its numbers before and after the future has changed.
    """
    return attend(q, k, v).shape != (len(q), v.shape[-1])


@mistake
def the_callers_future(attend, q, k, v):
    """Your verdict is right, but the caller's tensors are not what they were.

    Cause: The future was overwritten in the inputs themselves.
    Cure: Change clones.
    """
    verdict = leaks(attend, q, k, v)
    for x in (q, k, v):
        x[1:] = LAST
    return verdict


LEAK = Exercise(
    "doctor/leak",
    asks="whether an attention function lets the past see the future",
    solution=leaks,
    probes=(
        probe("what is causal does not leak", causal),
        probe("no mask at all leaks", attention),
        probe("a mask after the softmax leaks through the keys", late),
        probe("shared out anew it leaks if the future is loud", shared_anew),
        probe("zero times infinity is a leak", zero_times_infinity),
        probe("one step ahead is a leak", one_step_ahead),
        probe("a mean of values over all places leaks", mean_of_all),
        probe("so does a mean of queries", queries_of_all),
        probe("one pair is enough: the second and the last", sees_the_last),
        probe("one pair is enough: the third and the fourth", sees_by_the_way),
    ),
    mistakes=(
        nan_does_not_count,
        values_only,
        keys_only,
        a_quiet_future,
        the_last_token_only,
        the_first_token_only,
        the_present_counted_as_past,
        the_other_way_round,
        shape_only,
        the_callers_future,
    ),
)
