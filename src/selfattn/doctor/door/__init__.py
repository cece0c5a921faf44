"""The door: of a file, what is in it, and what each thing seems to be.

Who comes with a file need not know what a kind is. `things` finds what the
file makes itself, `making` makes one of a class, and `guessing` says which
kind a thing looks like, and why: by the name that it has (`names`), by what
it can be called with and gives back (`functions`,
`modules`, `wholes`), which is tried in silence (`trying`) at widths of
its own (`sizes`), as a picture's, too (`other_texts`), and by whether a
network is in it (`networks`). A thing of which nothing can be said is left
out, and named. `surveying` does this for all of a file; who examines them
then is the engine.
"""
