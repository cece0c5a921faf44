"""A network is told from the maps of an attention by what lies between."""

import torch
from torch import nn

from selfattn.doctor.door.modules import kinds_of
from selfattn.doctor.door.networks import has_a_network

D, INNER = 6, 10


class Attends(nn.Module):
    """Two heads, together wider than a token, and two norms or more."""

    def __init__(self, gate=False, fused=False):
        super().__init__()
        self.norm, self.norm_out = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.out = nn.Linear(D, INNER), nn.Linear(INNER, D)
        self.kv = nn.Linear(D, 2 * INNER)
        self.gate, self.fused = nn.Linear(D, INNER) if gate else None, fused

    def forward(self, x):
        x = self.norm(x)
        return self.norm_out(self.out(self.heads(x, x)))

    def heads(self, x, memory):
        q, k, v = (
            t.unflatten(-1, (2, -1)).transpose(1, 2)
            for t in (self.q(x), *self.kv(memory).chunk(2, dim=-1))
        )
        said = (q @ k.mT / INNER**0.5).softmax(dim=-1) @ v
        if self.fused:
            said = nn.functional.scaled_dot_product_attention(q, k, v)
        said = said.transpose(1, 2).flatten(-2)
        return said if self.gate is None else said * self.gate(x).sigmoid()


class Listens(Attends):
    """The same across, with a norm for each of the two sequences."""

    def forward(self, x, memory):
        memory = self.norm_out(memory)
        return self.out(self.heads(self.norm(x), memory))


class Gated(nn.Module):
    """A network whose hidden features have gates, on bare matrices."""

    def __init__(self):
        super().__init__()
        self.up, self.gate = (
            nn.Parameter(torch.randn(D, INNER)) for _ in range(2)
        )
        self.down = nn.Parameter(torch.randn(INNER, D))

    def forward(self, x):
        return (x @ self.up * (x @ self.gate).sigmoid()) @ self.down


class Lost(Attends):
    """A block that has lost its paths."""

    def __init__(self):
        super().__init__()
        self.network = Gated()

    def forward(self, x):
        x = self.norm(x)
        return self.network(self.norm_out(self.out(self.heads(x, x))))


def first(module):
    return kinds_of(module.eval(), "M")[0][0]


def test_heads_wider_than_a_token_are_no_network():
    """With a norm in front and one behind, they were called a block."""
    for module in Attends(), Attends(gate=True), Attends(fused=True):
        assert not has_a_network(module, torch.randn(2, 3, D))
        assert first(module) == "self-attention"


def test_a_norm_for_each_of_two_sequences_makes_no_block():
    assert first(Listens()) == "cross-attention"


def test_a_network_behind_attention_makes_a_block():
    x = torch.randn(2, 3, D)
    assert has_a_network(Gated(), x) and has_a_network(Lost(), x)
    assert first(Lost()) == "encoder-block"


def test_a_network_is_found_though_nothing_is_to_be_learnt():
    module, x = Lost().requires_grad_(False), torch.randn(2, 3, D)
    with torch.no_grad():
        assert has_a_network(module, x)
        assert not torch.is_grad_enabled()
    assert not any(p.requires_grad for p in module.parameters())


def test_what_cannot_be_called_or_has_no_graph_has_no_network():
    assert not has_a_network(Gated(), torch.randn(2, 3, D + 1))
    assert not has_a_network(nn.Identity(), torch.randn(2, 3, D))
