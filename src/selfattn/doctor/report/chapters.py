"""The chapters of the book, as its contents number and name them."""

CHAPTERS = {
    "origins": "Where attention came from",
    "dot_product": "Queries, keys and values",
    "scaling": "Why divide by √dₖ",
    "masks": "Masks: who may look at whom",
    "multihead": "Multi-head attention: several at once",
    "positions": "Telling attention where things are",
    "layers": "Add & Norm and the feed-forward network",
    "blocks": "Encoder, decoder, and the three masks",
    "models": "One mechanism, many models",
    "looking_inside": "What attention learns",
    "cost": "Counting and measuring",
    "overview": "Cheaper attention: what there is, what it costs, "
    "how far it is off",
    "flash": "FlashAttention: exact, and never the whole table",
    "window": "Windows: near tokens, and a few that see all",
    "sparse": "Sparse patterns: everywhere in two steps",
    "swin": "Swin: windows that move",
    "reformer": "Reformer: look where it points",
    "linformer": "Linformer: fewer keys, each a mixture",
    "linear": "Linear attention: a memory that does not grow",
    "performer": "Performer: directions drawn at random",
    "devices": "Beyond one device",
    "bench": "Beside others",
    "doctor": "Debugging attention",
}
NUMBERS = {stem: place for place, stem in enumerate(CHAPTERS, start=1)}


def in_the_book(place: str) -> str:
    """A chapter and, if it is named, a section of it, as readers find them.

    Args:
        place: a chapter's short name, and a section's after "#".

    >>> in_the_book("scaling")
    'chapter 3, “Why divide by √dₖ”'
    >>> in_the_book("masks#zero-is-a-vote")
    'chapter 4, “Masks: who may look at whom”, under “zero is a vote”'
    """
    page, _, section = place.partition("#")
    named = f"the chapter “{page}”"  # of somebody's own exercise
    if page in CHAPTERS:
        named = f"chapter {NUMBERS[page]}, “{CHAPTERS[page]}”"
    words = section.replace("-", " ")
    return named + (f", under “{words}”" if words else "")
