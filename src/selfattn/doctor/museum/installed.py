"""What packages do that can be installed today, each with its version.

All of these were seen in the version that is named, called as its users call
it. Where somebody had reported one, the thread is named; where not, the
version.
"""

import torch
import torch.nn.functional as F

from selfattn.doctor.museum.entry import room
from selfattn.doctor.museum.modules import Sound
from selfattn.efficient.linear import elu_plus_one
from selfattn.efficient.performer import random_directions
from selfattn.masks import causal_mask


def powers(x, axes):
    """Positive random features, by the largest along some axes, and more."""
    x = x.float() / x.shape[-1] ** 0.25
    dots = x @ random_directions(24, x.shape[-1]).mT
    most = dots.amax(dim=axes, keepdim=True)
    return (dots - x.square().sum(-1, keepdim=True) / 2 - most).exp() + 1e-4


def summed_up(f_q, f_k, v, causal=False):
    """Linear attention: keys and values are summed up before any query."""
    pairs = f_k[..., :, None] * v.float()[..., None, :]
    pairs, total = (
        x.cumsum(dim=axis) if causal else x.sum(dim=axis, keepdim=True)
        for x, axis in ((pairs, -3), (f_k, -2))
    )
    above = (f_q[..., None, :] @ pairs)[..., 0, :]
    return (above / (f_q * total).sum(dim=-1, keepdim=True)).to(v.dtype)


@room(
    "lucidrains/performer-pytorch#82",
    "2022-01",
    kind="efficient",
    named="later keys are felt",
    versions="performer-pytorch 1.1.4",
    formula="own",
    layout="any",
)
def measured_by_the_loudest_of_all_times(q, k, v, causal=False):
    """A causal Performer gave other outputs when the text went on.

    The features of keys are divided by the largest of all positions, and a
    small number is added. The reporter found the line; it still stands.
    """
    return summed_up(powers(q, -1), powers(k, (-1, -2)), v, causal)


@room(
    "lucidrains/performer-pytorch#69",
    "2021-05",
    kind="efficient",
    named="nearly the plain mean",
    versions="performer-pytorch 1.1.4",
    formula="own",
    layout="any",
)
def the_mean_of_what_is_loud(q, k, v):
    """A reader compared a Performer with attention, and was off by 73 %.

    At a width of 64 and unit variance nearly all features fall below the
    small number that is added, and the output is the mean of the values.
    """
    return summed_up(powers(q, -1), powers(k, (-1, -2)), v)


@room(
    "fla-org/flash-linear-attention#pull-1266",
    "2026-09",
    kind="efficient",
    named="padded keys stay in the denominator",
    formula="own",
    layout="any",
    padding="keep",
)
def padding_that_weighs_nothing_and_counts(q, k, v, key_padding_mask=None):
    """The values of padding were wiped out, and its keys counted on.

    The feature map of a key that is wiped out before it is not zero, either.
    """
    if key_padding_mask is not None:
        v = v * key_padding_mask.view(len(v), *[1] * (v.ndim - 3), -1, 1)
    f_q, f_k = elu_plus_one(q.float()), elu_plus_one(k.float())
    return summed_up(f_q, f_k, v)


@room(
    kind="self-attention",
    named="padding ignored",
    versions="performer-pytorch 1.1.4",
    formula="own",
    causal=False,
    names={"padding": "mask", "mask": None},
    padding="keep",
)
class PaddingHasASay(Sound):
    """Of 1,024 tokens half are padding: outputs are off by over a quarter.

    The values of padding are set to zero. Its keys stay in the sum by which
    all is divided.
    """

    def forward(self, x, mask=None):
        """Wipe out values, and leave the keys where they are."""
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        if mask is not None:
            v = v * mask[:, None, :, None]
        f_q, f_k = elu_plus_one(q.float()), elu_plus_one(k.float())
        return self.W_o(self.merge(summed_up(f_q, f_k, v)))


@room(
    "lucidrains/linear-attention-transformer#14",
    "2022-05",
    kind="efficient",
    named="rows sum to one over root d",
    versions="linear-attention-transformer 0.19.1",
    formula="own",
    layout="any",
)
def scaled_where_nothing_needs_it(q, k, v):
    """A reader asked whether the root should not be shared by q and k.

    It comes to the same, and the question was closed. But softmax is taken
    of queries and of keys each, so that weights sum to one already; divided
    by the root, those of 64 features sum to an eighth.
    """
    shares = q.float().softmax(dim=-1) / q.shape[-1] ** 0.5
    memory = k.float().softmax(dim=-2).mT @ v.float()
    return (shares @ memory).to(v.dtype)


@room(
    kind="efficient",
    named="padding written into keys and values",
    versions="linear-attention-transformer 0.19.1",
    formula="own",
    layout="any",
    padding="keep",
)
def a_mask_that_leaves_its_mark(q, k, v, kv_mask=None):
    """Handed a mask, the function fills the caller's own keys and values.

    Whoever needs them once more finds zeros, and the lowest of all numbers.
    """
    if kv_mask is not None:
        padded = ~kv_mask.view(len(k), *[1] * (k.ndim - 3), -1, 1)
        k.masked_fill_(padded, torch.finfo(k.dtype).min)
        v.masked_fill_(padded, 0.0)
    f_q, f_k = elu_plus_one(q.float()), elu_plus_one(k.float())
    return summed_up(f_q, f_k, v)


@room(
    kind="efficient",
    named="exponentials as they are",
    versions="linear-attention-transformer 0.19.1",
    formula="own",
    causal=True,
    layout="any",
    square=True,
)
def keys_too_large_or_too_small(q, k, v):
    """Add 90 to all keys, and all is NaN; take 12 off, and little is left.

    exp(k) is taken of the keys as they are, and the denominator is not let
    below a thousandth.
    """
    f_q = q.float().softmax(dim=-1) / q.shape[-1] ** 0.5
    f_k = k.float().exp()
    pairs = (f_k[..., :, None] * v.float()[..., None, :]).cumsum(dim=-3)
    total = (f_q * f_k.cumsum(dim=-2)).sum(dim=-1, keepdim=True)
    above = (f_q[..., None, :] @ pairs)[..., 0, :]
    return (above / total.clamp(min=1e-3)).to(v.dtype)


@room(
    kind="efficient",
    named="own block not seen",
    versions="linear-attention-transformer 0.19.1",
    formula="own",
    causal=True,
    layout="any",
    square=True,
)
def blind_to_its_own_bucket(q, k, v):
    """By default a causal token sees nothing of the 64 it stands among.

    The first 64 outputs are zero. The module says 1 instead, and is right.
    """
    f_q, f_k = elu_plus_one(q.float()), elu_plus_one(k.float())
    pairs = (f_k[..., :, None] * v.float()[..., None, :]).cumsum(dim=-3)
    total, start = f_k.cumsum(dim=-2), torch.arange(q.shape[-2]) // 4 * 4
    pairs, total = (
        F.pad(x, (0,) * (2 * axes) + (1, 0)).index_select(-1 - axes, start)
        for x, axes in ((pairs, 2), (total, 1))
    )
    above = (f_q[..., None, :] @ pairs)[..., 0, :]
    below = (f_q * total).sum(dim=-1, keepdim=True)
    return (above / (below + (below == 0))).to(v.dtype)


def around(x, size):
    """Each block of some tokens, with the block before it and that after."""
    blocks = F.pad(x, (0, 0, size, size)).unfold(-2, 3 * size, size)
    return blocks.transpose(-2, -1)


@room(
    kind="efficient",
    named="padding of the last block is seen",
    versions="local-attention 1.11.2",
    window=65,
    layout="any",
    square=True,
)
def zeros_at_the_end(q, k, v, causal=False):
    """Asked to pad by itself, it attends to the zeros that it pads with.

    Of 500 tokens in windows of 256, half the rows are off. A mask that hides
    nothing cures it.
    """
    n, size = q.shape[-2], 64
    full = (0, 0, 0, -n % size)
    q, k, v = (F.pad(x, full) for x in (q, k, v))
    i = torch.arange(q.shape[-2]).unflatten(0, (-1, size))[..., None]
    j = (i[:, :1] - size) + torch.arange(3 * size)
    near = ((i - j).abs() <= size) & (j >= 0) & (j < q.shape[-2])
    near = near & (j <= i) if causal else near
    q = q.unflatten(-2, (-1, size))
    output = F.scaled_dot_product_attention(
        q, around(k, size), around(v, size), near
    )
    return output.flatten(-3, -2)[..., :n, :]


@room(
    kind="efficient",
    named="one key too many behind",
    versions="pytorch-fast-transformers 0.4.0",
    window=7,
    layout="any",
    square=True,
)
def more_behind_than_ahead(q, k, v, causal=False):
    """A context of 512 is to be all keys nearer than 256, and is not.

    Behind a query there are 256, and ahead of it 255; causal, 257 are seen.
    """
    n, context = q.shape[-2], 14
    full = (0, 0, context // 2, context // 2)
    k, v = (
        F.pad(x, full).unfold(-2, context, 1)[..., :n, :, :] for x in (k, v)
    )
    j = torch.arange(n)[:, None] + torch.arange(-7, 7)
    seen = (j >= 0) & (j < n)
    if causal:
        seen = seen & (torch.arange(-7, 7) <= 0)
    q = q[..., None, :]
    return F.scaled_dot_product_attention(q, k.mT, v.mT, seen[:, None])[
        ..., 0, :
    ]


def windows_from_two_on(n_q, n_k):
    """Windows of four, the first of which has only two tokens."""
    window = (torch.arange(n_k) + 2) // 4
    return window[n_k - n_q :, None] == window


@room(
    "huggingface/pytorch-image-models#2438",
    "2025-02",
    kind="efficient",
    named="rolled before it is padded",
    versions="timm 1.0.31",
    table=windows_from_two_on,
    layout="any",
    square=True,
)
def ends_in_one_window(q, k, v, causal=False):
    """Where windows do not divide a picture, its opposite edges meet.

    It is rolled and then padded; the mask is that of one padded first.
    """
    n = q.shape[-2]
    rolled = (x.roll(-2, dims=-2) for x in (q, k, v))
    q, k, v = (F.pad(x, (0, 0, 0, -n % 4)) for x in rolled)
    place = torch.arange(q.shape[-2])
    part = (place >= len(place) - 4).int() + (place >= len(place) - 2)
    real, came_from = place < n, (place + 2) % n
    part, real, came_from = (
        x.unflatten(0, (-1, 4)) for x in (part, real, came_from)
    )
    seen = (part[:, :, None] == part[:, None]) & real[:, None]
    if causal:
        seen = seen & (came_from[:, :, None] >= came_from[:, None])
    q, k, v = (x.unflatten(-2, (-1, 4)) for x in (q, k, v))
    output = F.scaled_dot_product_attention(q, k, v, seen)
    return output.flatten(-3, -2)[..., :n, :].roll(2, dims=-2)


def windows_of_sixteen(n_q, n_k):
    """Each token sees those of its own sixteen."""
    window = torch.arange(n_k) // 16
    return window[n_k - n_q :, None] == window


@room(
    kind="efficient",
    named="padding of the last block is seen",
    versions="transformers 5.23.0",
    table=windows_of_sixteen,
    layout="any",
    square=True,
)
def the_frame_is_looked_at(q, k, v, causal=False):
    """Swin fills a picture up to whole windows, and looks at the filling.

    So did the authors' own code, and so does timm 1.0.31.
    """
    n = q.shape[-2]
    q, k, v = (
        F.pad(x, (0, 0, 0, -n % 16)).unflatten(-2, (-1, 16)) for x in (q, k, v)
    )
    past = causal_mask(16, 16) if causal else None
    output = F.scaled_dot_product_attention(q, k, v, past)
    return output.flatten(-3, -2)[..., :n, :]


@room(
    "lucidrains/linformer#6",
    "2021-05",
    kind="self-attention",
    named="mask ignored",
    versions="linformer 0.2.3",
    names={"mask": "mask"},
    mask="keep",
    mask_axes="NN",
    causal=False,
)
class SwallowsWhatItIsTold(Sound):
    """A reader asked for a mask. It can be handed over, and does nothing.

    mask, attn_mask, causal: all of them go into **kwargs, and nobody looks.
    """

    def forward(self, x, **kwargs):
        """Take anything."""
        return super().forward(x)


def in_pieces(x, filling):
    """Tokens, eight by eight; the last piece is filled up."""
    whole = F.pad(x, (0, 0, 0, -x.shape[-2] % 8), value=filling)
    return whole.unflatten(-2, (-1, 8))


def with_the_one_before(x, filling):
    """Each piece behind the one before it."""
    before = F.pad(x, (0, 0, 0, 0, 1, 0), value=filling)[..., :-1, :, :]
    return torch.cat((before, x), dim=-2)


@room(
    kind="efficient",
    named="later keys choose what is seen",
    versions="reformer-pytorch 1.4.4",
    formula="own",
    layout="any",
    square=True,
)
def sorted_among_those_to_come(q, k, v, causal=False):
    """Other words at the end of a text, and nearly all rows before move.

    All tokens are sorted by their hashes and cut into pieces, also those to
    come. No value of theirs gets through. The published algorithm says so.
    """
    n, hashes = k.shape[-2], k @ random_directions(3, k.shape[-1]).mT.to(k)
    order = hashes.argmax(dim=-1).argsort(stable=True)[..., None]
    q, k, v = (x.gather(-2, order.expand_as(x)) for x in (q, k, v))
    q, k, v = (in_pieces(x, 0.0) for x in (q, k, v))
    i = in_pieces(order, -1)
    k, v = (with_the_one_before(x, 0.0) for x in (k, v))
    j = with_the_one_before(i, -1).mT
    seen = (j >= 0) & (j <= i) if causal else j >= 0
    output = F.scaled_dot_product_attention(q, k, v, seen | (i < 0))
    output = output.flatten(-3, -2)[..., :n, :]
    return output.gather(-2, order.argsort(dim=-2).expand_as(output))


@room(
    kind="self-attention",
    named="not causal",
    versions="transformers 5.23.0",
    causal=True,
)
class CausalWhereItIsFused(Sound):
    """GPT-2's layer hides what is to come on its fused path alone.

    On the other it waits for a mask. Its model hands one in; who takes the
    layer out of the model has none, and no warning.
    """

    def attend(self, q, k, v, implementation="eager"):
        """Leave causality to the kernel, and take another path."""
        if implementation == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return super().attend(q, k, v)
