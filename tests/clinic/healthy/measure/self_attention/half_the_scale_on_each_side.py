"""Speech: queries and keys each take a root of the scale; keys no bias."""

from torch import Tensor, nn


class SpeechAttention(nn.Module):
    def __init__(self, n_state: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, x: Tensor, mask: Tensor | None = None):
        wv, qk = self.attend(self.query(x), self.key(x), self.value(x), mask)
        return self.out(wv), qk

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None):
        n_ctx, n_state = q.shape[1:]
        # smaller numbers on both sides, so that halves do not overflow
        scale = (n_state // self.n_head) ** -0.25
        q = q.unflatten(-1, (self.n_head, -1)).permute(0, 2, 1, 3) * scale
        k = k.unflatten(-1, (self.n_head, -1)).permute(0, 2, 3, 1) * scale
        v = v.unflatten(-1, (self.n_head, -1)).permute(0, 2, 1, 3)

        qk = q @ k
        if mask is not None:
            # made once for the longest text
            qk = qk + mask[:n_ctx, :n_ctx]
        w = qk.softmax(dim=-1)
        wv = (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)
        return wv, qk.detach()


PATIENT = SpeechAttention(n_state=12, n_head=2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
    "n_heads": 2,
}
INPUTS = {"x": "b n 12", "mask?": "add n n"}
