"""Linear and causal: a state that each token adds to."""

import torch


def causal_linear(q, k, v):
    q, k = torch.relu(q) + 1e-3, torch.relu(k) + 1e-3
    state = q.new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1])
    total = q.new_zeros(*q.shape[:-2], q.shape[-1])
    rows = []
    for t in range(q.shape[-2]):
        q_t, k_t, v_t = q[..., t, :], k[..., t, :], v[..., t, :]
        state = state + k_t[..., :, None] * v_t[..., None, :]
        total = total + k_t
        top = (q_t[..., :, None] * state).sum(dim=-2)
        rows.append(top / (q_t * total).sum(dim=-1, keepdim=True))
    return torch.stack(rows, dim=-2)


PATIENT = causal_linear
FACTS = {
    "layout": "any",
    "kernel": lambda x: torch.relu(x) + 1e-3,
    "causal": True,
    "square": True,
}
INPUTS = {"q": "b h n d", "k": "b h n d", "v": "b h n e"}
LOUDEST = 4
