"""The museum: real bugs, each with its public thread, each found out.

Every room holds a bug that was reported of code that people used, or that
was seen in a version of it that can be installed today. What is here was
written anew, as small as it goes, from what the report says or the package
does; no line is theirs. Nobody is to be ashamed: all of them were found by
people who looked, many were mended within days, and every one of them is a
mistake that the next of us will make again.

>>> len(rooms()) >= 60
True
>>> print(rooms()[0].visit().mistake.name)
no scale
"""

from selfattn.doctor.museum.entry import Room, rooms

__all__ = ["Room", "rooms"]
