"""Sound blocks with a formula of their own, each with slips that it may have.

A slip is asked for by its name; without one, the block is sound.
"""

import math
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

D = 12


class Mixing(nn.Module):
    """Tokens look at each other: softmax, or a sum over all that came."""

    def __init__(self, d=D, linear=False, d_context=D):
        super().__init__()
        self.ask, self.tell = nn.Linear(d, d), nn.Linear(d_context, 2 * d)
        self.say, self.linear = nn.Linear(d, d), linear

    def forward(self, x, context=None, past=False):
        k, v = self.tell(x if context is None else context).chunk(2, -1)
        q = self.ask(x)
        if self.linear:
            state = F.softplus(k).mT @ v
            return self.say(F.softplus(q) @ state / k.shape[-2])
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if past:
            n = x.shape[-2]
            later = torch.ones(n, n, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        return self.say(scores.softmax(-1) @ v)


def network(d=D, bend=nn.GELU):
    return nn.Sequential(nn.Linear(d, 2 * d), bend(), nn.Linear(2 * d, d))


class Slipping(nn.Module):
    """A block that may have a slip."""

    slips: ClassVar[
        dict[str, str]
    ] = {}  # each with the name that it should get
    open_: ClassVar[
        dict[str, str]
    ] = {}  # those that are asked after, if nobody told
    order = ""  # where its author would say that the norms stand

    def __init__(self, slip=""):
        super().__init__()
        assert slip in ("", *self.slips, *self.open_)
        self.slip = slip
        self.make()

    def join(self, x, said, at):
        """What a sublayer says is added, unless it slips there."""
        if self.slip == f"lost at {at}":
            return said
        if self.slip == f"taken off at {at}":
            return x - said
        if self.slip == f"twice at {at}":
            return x + (x + said)
        return x if self.slip == f"left out at {at}" else x + said


ATTENTION = "no residual around the attention"
NETWORK = "no residual around the feed forward"


class Gated(Slipping):
    """What a sublayer says is let in by a gate of what came before."""

    slips: ClassVar = {"lost": "no residual", "norm idle": "no norm"}
    order = "pre"

    def make(self):
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mix, self.net = Mixing(linear=True), network()
        self.open = nn.ModuleList(nn.Linear(2 * D, D) for _ in range(2))

    def let(self, gate, x, said):
        if self.slip == "lost":
            return said
        share = torch.sigmoid(gate(torch.cat([x, said], dim=-1)))
        return (1 - share) * x + share * said

    def forward(self, x):
        normed = x if self.slip == "norm idle" else self.one(x)
        x = self.let(self.open[0], x, self.mix(normed))
        return self.let(self.open[1], x, self.net(self.two(x)))


class Recurrent(Slipping):
    """A GRU joins what came before and what a sublayer says."""

    def make(self):
        self.norm, self.mix = nn.LayerNorm(D), Mixing()
        self.net, self.gru = network(), nn.GRUCell(D, D)

    def forward(self, x):
        said = torch.relu(self.mix(self.norm(x)))
        x = self.gru(said.flatten(0, 1), x.flatten(0, 1)).view_as(x)
        return x + self.net(x)


class Scaled(Slipping):
    """Numbers that are learnt multiply what is added; one a block, or many."""

    slips: ClassVar = {
        "lost at attention": ATTENTION,
        "lost at network": NETWORK,
        "start": "residual from the start",
        "left out at network": "no feed forward",
        "on the path": "norm on the path",
    }
    open_: ClassVar = {"on the path": "norms on both sides"}
    order = "pre"

    def make(self):
        self.norm1, self.norm2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.mix, self.ffn = Mixing(), network()
        self.much = nn.Parameter(torch.tensor(0.0))
        self.each = nn.Parameter(torch.full((D,), 1e-4))

    def forward(self, x):
        start = x
        said = self.each * self.mix(self.norm1(x))
        x = self.join(x, said, "attention")
        normed = self.norm2(x)
        if self.slip == "left out at network":
            return x
        if self.slip == "on the path":
            x = normed
        if self.slip == "start":
            x = start
        return self.join(x, self.much.tanh() * self.ffn(normed), "network")


class Deep(Slipping):
    """Behind the sums, and the path counts more than what is added."""

    slips: ClassVar = {
        "lost at attention": ATTENTION,
        "lost at network": NETWORK,
        "twice at network": "path twice",
        "other side": "the norm on the other side",
    }
    open_: ClassVar = {"other side": "norms on both sides"}
    order = "post"

    def make(self):
        self.after = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))
        self.mix, self.net = Mixing(), network()

    def forward(self, x):
        alpha = 1.0 if "twice" in self.slip else 1.7
        said = self.mix(x)
        x = self.after[0](self.join(alpha * x, said, "attention"))
        if self.slip == "other side":
            return x + self.net(self.after[1](x))
        return self.after[1](self.join(alpha * x, self.net(x), "network"))


class Halved(Slipping):
    """The variance is kept: every sum is divided by the root of two."""

    slips: ClassVar = {
        "lost at attention": ATTENTION,
        "taken off at network": "residual subtracted",
        "straight": "network without a bend",
    }
    order = "pre"

    def make(self):
        bend = nn.Identity if self.slip == "straight" else nn.GELU
        self.norm, self.net = nn.LayerNorm(D), network(bend=bend)
        self.again, self.mix = nn.LayerNorm(D), Mixing(linear=True)

    def forward(self, x):
        x = self.join(x, self.mix(self.norm(x)), "attention") / math.sqrt(2)
        x = self.join(x, self.net(self.again(x)), "network")
        return x / math.sqrt(2)


class Sandwich(Slipping):
    """Norms on both sides of sublayers that are of their own kind."""

    slips: ClassVar = {
        "lost at attention": ATTENTION,
        "lost at network": NETWORK,
        "taken off at attention": "residual subtracted",
        "twice at network": "path twice",
        "twice normed": "norm before and behind",
    }
    order = "sandwich"

    def make(self):
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(4))
        self.norm = self.norms[0]
        self.mix, self.net = Mixing(linear=True), network()

    def forward(self, x):
        normed = self.norm(x)
        if self.slip == "twice normed":
            normed = self.norm(normed)
        said = self.norms[1](self.mix(normed))
        x = self.join(x, said, "attention")
        said = self.norms[3](self.net(self.norms[2](x)))
        return self.join(x, said, "network")


class SideBySide(Slipping):
    """Attention and network see the same, and both are added."""

    slips: ClassVar = {
        "lost at both": "no residual",
        "twice at both": "path twice",
        "map idle": "projection not used",
    }
    open_: ClassVar = {"taken off at both": "taken off"}
    order = "parallel"

    def make(self):
        self.norm, self.mix = nn.LayerNorm(D), Mixing(linear=True)
        self.first, self.last = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        self.out = nn.Linear(D, D)
        self.share = nn.Linear(D, D)

    def forward(self, x):
        normed = self.norm(x)
        share = torch.sigmoid(self.share(normed))
        mixed = self.mix(normed) * share
        mixed = mixed if self.slip == "map idle" else self.out(mixed)
        net = self.last(F.silu(self.first(normed)))
        if self.slip == "lost at both":
            return mixed + net
        if self.slip == "taken off at both":
            return x - mixed - net
        return self.join(x + mixed, net, "both")


class Convolved(nn.Module):
    """Looks at neighbours, through a gate."""

    def __init__(self, d=D):
        super().__init__()
        self.norm, self.into = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 1)
        self.near = nn.Conv1d(d, d, 3, padding=1, groups=d)
        self.batch, self.out = nn.BatchNorm1d(d), nn.Conv1d(d, d, 1)

    def forward(self, x):
        y = F.glu(self.into(self.norm(x).mT), dim=1)
        return self.out(F.silu(self.batch(self.near(y)))).mT


class Macaron(Slipping):
    """Half a network, attention, a convolution, half a network, a norm."""

    slips: ClassVar = {
        "lost at first": NETWORK,
        "lost at attention": ATTENTION,
        "lost at convolution": "no residual around a sublayer",
        "lost at last": NETWORK,
        "taken off at first": "residual subtracted",
        "taken off at convolution": "residual subtracted",
        "twice at attention": "path twice",
        "start": "residual from the start",
        "second on the path": "norm on the path",
    }
    open_: ClassVar = {"second on the path": "norms on both sides"}
    order = "pre"

    def make(self):
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(4))
        self.first, self.last = network(), network()
        self.mix, self.near = Mixing(), Convolved()

    def forward(self, x):
        one, two, three, end = self.norms
        start = x
        x = self.join(x, self.first(one(x)) / 2, "first")
        normed = two(x)
        x = normed if self.slip == "second on the path" else x
        x = start if self.slip == "start" else x
        x = self.join(x, self.mix(normed), "attention")
        x = self.join(x, self.near(x), "convolution")
        return end(self.join(x, 0.5 * self.last(three(x)), "last"))


class OneSublayer(Slipping):
    """Attention that is gated, and nothing else, as in a gated unit."""

    slips: ClassVar = {"lost at all": ATTENTION, "twice at all": "path twice"}

    def make(self):
        self.norm, self.out = nn.LayerNorm(D), nn.Linear(2 * D, D)
        self.three = nn.Linear(D, 5 * D)

    def forward(self, x):
        u, v, base = self.three(self.norm(x)).split([2 * D, 2 * D, D], -1)
        scores = F.relu(base @ base.mT / x.shape[1]).square()
        return self.join(x, self.out(F.silu(u) * (scores @ v)), "all")


class Fourier(Slipping):
    """Tokens are mixed by a transform that has nothing to learn."""

    slips: ClassVar = {
        "lost at network": NETWORK,
        "taken off at network": "residual subtracted",
    }
    order = "post"

    def make(self):
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.net = network()

    def forward(self, x):
        x = self.one(x + torch.fft.fft2(x.float()).real.to(x.dtype))
        return self.two(self.join(x, self.net(x), "network"))


class Hybrid(Slipping):
    """Norms inside the attention, and one of the sum before the network."""

    order = "post"

    def make(self):
        self.inner = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.net, self.mid = network(), nn.LayerNorm(D)
        self.end = nn.LayerNorm(D)

    def forward(self, x):
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (n(t) for n, t in zip(self.inner, parts, strict=True))
        x = x + self.out((q @ k.mT / math.sqrt(D)).softmax(-1) @ v)
        x = self.mid(x)
        return self.end(x + self.net(x))


class TwoStreams(Slipping):
    """A normed stream, and another that is never normed until the end."""

    slips: ClassVar = {"norm idle": "no norm"}

    def make(self):
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.mix, self.net = Mixing(), network()
        self.end = self.norms[2]

    def forward(self, x):
        said = self.mix(x)
        bare, x = x + said, self.norms[0](x + said)
        said = self.net(x)
        if self.slip == "norm idle":
            return bare + said + self.norms[1](x + said)
        return self.end(bare + said) + self.norms[1](x + said)


class Difference(Slipping):
    """What two attentions say, one taken off the other."""

    slips: ClassVar = {
        "lost at attention": ATTENTION,
        "lost at network": NETWORK,
    }
    order = "pre"

    def make(self):
        self.norm, self.net = nn.LayerNorm(D), network()
        self.plus, self.minus = Mixing(), Mixing()
        self.last = nn.LayerNorm(D)

    def forward(self, x):
        normed = self.norm(x)
        said = self.plus(normed) - 0.8 * self.minus(normed)
        x = self.join(x, said, "attention")
        return self.join(x, self.net(self.last(x)), "network")


class Reversible(Slipping):
    """Each half of the features is added what is made of the other."""

    def make(self):
        self.one, self.two = nn.LayerNorm(D // 2), nn.LayerNorm(D // 2)
        self.mix = Mixing(D // 2, d_context=D // 2)
        self.net = network(D // 2)
        self.wide = nn.LayerNorm(D)

    def forward(self, x):
        left, right = self.wide(x).chunk(2, dim=-1)
        left = left + self.mix(self.one(right))
        right = right + self.net(self.two(left))
        return torch.cat([left, right], dim=-1)


class Written(Slipping):
    """Norms written by hand, and sums in place on what is its own."""

    slips: ClassVar = {"lost at network": NETWORK}
    order = "pre"

    def make(self):
        self.g1 = nn.Parameter(torch.ones(D))
        self.g2 = nn.Parameter(torch.ones(D))
        self.mix, self.net = Mixing(), network()

    def norm(self, x, g):
        centred = x - x.mean(-1, keepdim=True)
        return g * centred * torch.rsqrt(centred.var(-1, keepdim=True) + 1e-5)

    def forward(self, x):
        h = x.clone()
        h += self.mix(self.norm(x, self.g1))
        said = self.net(self.norm(h, self.g2))
        if self.slip == "lost at network":
            return said
        return h.add_(said)


class PlacedByNeighbours(Slipping):
    """A convolution tells where a token is; then norms before."""

    slips: ClassVar = {
        "lost at attention": ATTENTION,
        "on the path": "norm on the path",
    }
    open_: ClassVar = {"on the path": "norms on both sides"}
    order = "pre"

    def make(self):
        self.place = nn.Conv1d(D, D, 3, padding=1, groups=D)
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mix, self.net = Mixing(), network()
        self.end = nn.LayerNorm(D)

    def forward(self, x):
        x = self.join(x, self.place(x.mT).mT, "place")
        normed = self.one(x)
        x = normed if self.slip == "on the path" else x
        x = self.join(x, self.mix(normed), "attention")
        return self.end(self.join(x, self.net(self.two(x)), "network"))


class Memory(Slipping):
    """A decoder block: first the memory, by a gate; then its own tokens."""

    slips: ClassVar = {
        "lost at memory": "no residual around the cross attention",
        "lost at self": ATTENTION,
        "lost at network": NETWORK,
        "taken off at self": "residual subtracted",
        "start": "residual from the start",
    }
    order = "pre"

    def make(self):
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.other, self.own = Mixing(d_context=9), Mixing()
        self.net, self.much = network(), nn.Parameter(torch.tensor([0.0]))

    def forward(self, x, memory):
        one, two, three = self.norms
        said = self.much.tanh() * self.other(one(x), memory)
        x = start = self.join(x, said, "memory")
        x = self.join(x, self.own(two(x), past=True), "self")
        normed = three(x)
        x = start if self.slip == "start" else x
        return self.join(x, self.net(normed), "network")


BLOCKS = (
    *(Gated, Recurrent, Scaled, Deep, Halved, Sandwich, SideBySide, Macaron),
    *(OneSublayer, Fourier, Hybrid, TwoStreams, Difference, Reversible),
    *(Written, PlacedByNeighbours, Memory),
)
