"""The mechanisms of the book beside PyTorch's and other libraries'."""
