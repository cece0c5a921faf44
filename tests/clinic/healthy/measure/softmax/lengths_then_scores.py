"""A linguist's: sentence lengths come first, and log-sums come back too."""

import torch


def sentence_softmax(positions_from=0, empty=0.0):
    """Make a softmax over the words of sentences."""

    def softmax(lengths, scores):
        """scores: (sentences, words, words); lengths: (sentences,)."""
        word = torch.arange(scores.shape[-1], device=scores.device)
        beyond = word + positions_from >= lengths.view(-1, 1, 1)
        scores = scores.masked_fill(beyond, -torch.inf)
        silent = beyond.all(-1, keepdim=True)
        scores = scores.masked_fill(silent, 0.0)
        norm = scores.logsumexp(-1, keepdim=True)
        weights = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
        weights = weights / weights.sum(-1, keepdim=True)
        norm = norm.masked_fill(silent, -torch.inf).squeeze(-1)
        return weights.masked_fill(silent, empty), norm

    return softmax


PATIENT = sentence_softmax()
FACTS = {
    "mask": "lengths",
    "names": {"mask": "lengths"},
    "empty_row": "zeros",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "scores": "b n m",
    "lengths": "lengths b m",
}
