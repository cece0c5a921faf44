"""The doctor's command.

Its `arguments`, the thing that they name (`loading`), the things of a file
one by one (`visiting`), its lists (`listing`), and what it weighs when it is
installed (`weighing`).
"""
