"""Clicks on a picture: tokens hear the picture, then it hears the tokens."""

import math

from torch import Tensor, nn


class Attention(nn.Module):
    """Narrower inside than outside, if one likes."""

    def __init__(self, width: int, num_heads: int, shrink: int = 1) -> None:
        super().__init__()
        inner = width // shrink
        self.num_heads = num_heads
        self.q_proj = nn.Linear(width, inner)
        self.k_proj = nn.Linear(width, inner)
        self.v_proj = nn.Linear(width, inner)
        self.out_proj = nn.Linear(inner, width)

    def heads(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        x = x.reshape(b, n, self.num_heads, c // self.num_heads)
        return x.permute(0, 2, 1, 3)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q = self.heads(self.q_proj(q))
        k = self.heads(self.k_proj(k))
        v = self.heads(self.v_proj(v))
        attn = q @ k.permute(0, 1, 3, 2)
        attn = (attn / math.sqrt(q.shape[-1])).softmax(dim=-1)
        out = (attn @ v).permute(0, 2, 1, 3)
        return self.out_proj(out.flatten(2))


class TwoWayBlock(nn.Module):
    """Tokens: points and boxes. Image: the cells of a feature map."""

    def __init__(
        self, width: int, num_heads: int, mlp_dim: int, shrink: int = 2
    ) -> None:
        super().__init__()
        self.self_attn = Attention(width, num_heads)
        self.token_to_image = Attention(width, num_heads, shrink)
        self.image_to_token = Attention(width, num_heads, shrink)
        self.mlp = nn.Sequential(
            nn.Linear(width, mlp_dim), nn.ReLU(), nn.Linear(mlp_dim, width)
        )
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.norm3 = nn.LayerNorm(width)
        self.norm4 = nn.LayerNorm(width)

    def forward(
        self, tokens: Tensor, image: Tensor, token_pe: Tensor, image_pe: Tensor
    ) -> tuple[Tensor, Tensor]:
        # places are told to queries and keys, never to values
        q = tokens + token_pe
        attn_out = self.self_attn(q, q, tokens)
        tokens = self.norm1(tokens + attn_out)

        q = tokens + token_pe
        k = image + image_pe
        attn_out = self.token_to_image(q, k, image)
        tokens = self.norm2(tokens + attn_out)

        tokens = self.norm3(tokens + self.mlp(tokens))

        # the other way round; k is as above, the image did not change
        q = tokens + token_pe
        attn_out = self.image_to_token(k, q, tokens)
        image = self.norm4(image + attn_out)
        return tokens, image


PATIENT = TwoWayBlock(12, 2, 18)
FACTS = {
    "order": "post",
    "formula": "own",
    "layout": "BND",
    "causal": False,
    "self_attention": "self_attn",
    "cross_attention": "token_to_image",
    "feed_forward": "mlp",
    "norms": ["norm1", "norm2", "norm3", "norm4"],
    "n_heads": 2,
}
INPUTS = {
    "tokens": "b n 12",
    "image": "b m 12",
    "token_pe": "b n 12",
    "image_pe": "b m 12",
}
