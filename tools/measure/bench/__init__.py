"""The mechanisms beside PyTorch's and other libraries': one a module.

Each has ``races()``: who takes part, at which lengths, and what each should
give. `race` says what a race is, `measuring` how one is run.
"""
