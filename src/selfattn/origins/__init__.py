"""Where attention came from: recurrence, and what was put beside it.

One recurrent network read the source, another wrote the target, and all that
passed between them was one vector. Attention began as the second network's
way of looking back at every state of the first. Its scores were made by a
small network (Bahdanau) or by a product (Luong); the Transformer kept the
product, divided it by √d, and dropped the recurrence.
"""

from selfattn.origins.networks import Convolution, Recurrent
from selfattn.origins.scores import AdditiveAttention, MultiplicativeAttention
from selfattn.origins.translator import Memory, Translator

__all__ = [
    "AdditiveAttention",
    "Convolution",
    "Memory",
    "MultiplicativeAttention",
    "Recurrent",
    "Translator",
]
