"""What is done to the book: set up, built, verified, measured.

Each command is a module, and is run from the project's root: ``python -m
tools.verify.stages``. The make targets are short for these.
"""

import sys

# Whatever reads a notebook imports jsonschema, and that, where it is there,
# a grammar of the addresses called IRIs, which takes two seconds to be made.
# No schema of a notebook has one: jsonschema is told that it is not there.
sys.modules.setdefault("rfc3987_syntax", None)
