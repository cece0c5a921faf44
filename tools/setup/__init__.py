"""Setting up: make .venv, and install what a command of the book needs."""
