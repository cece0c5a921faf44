"""The small notebook, written once."""

from chain.small_notebook import notebook, written

__all__ = ["notebook", "written"]
