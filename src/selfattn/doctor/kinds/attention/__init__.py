"""Functions `attend(q, k, v, …)`."""
