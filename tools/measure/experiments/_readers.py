"""The layer that looks two digits up, and the one that is cut by view."""

from torch import Tensor, nn

from selfattn import MultiHeadAttention, attention
from selfattn.data.relations import D_MODEL, N_DIGITS

WIDTH = 32


class ByView(MultiHeadAttention):
    """Heads taken by `view` alone, going in and coming out: the bug."""

    def forward(self, x: Tensor) -> Tensor:
        """Self-attention over what is wrongly taken for heads."""
        batch, n, d_model = x.shape
        shape = batch, self.n_heads, n, d_model // self.n_heads
        q, k, v = (W(x).view(shape) for W in (self.W_q, self.W_k, self.W_v))
        return self.W_o(attention(q, k, v).view(batch, n, d_model))


class Reader(nn.Module):
    """Embedding, one layer of attention, and a score for each digit, twice."""

    def __init__(
        self,
        n_heads: int,
        *,
        width: int = WIDTH,
        hidden: int | None = None,
        by_view: bool = False,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(D_MODEL, width, bias=False)
        kind = ByView if by_view else MultiHeadAttention
        self.layer = kind(width, n_heads)
        self.read = nn.Linear(hidden or width, 2 * N_DIGITS)
        if hidden:
            inner = nn.Linear(width, hidden)
            self.read = nn.Sequential(inner, nn.ReLU(), self.read)

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (batch, 6, 2, 10)."""
        return self.read(self.layer(self.embed(x))).unflatten(-1, (2, -1))
