"""Lines of the same words are a table; sentences, code and lists are none."""

import pytest
from printed_tables import drawn, looks, named, parts
from printed_words import in_words


def read(text):
    return in_words(text.strip("\n").split("\n"))


def test_what_all_lines_say_is_the_header():
    head, rows = read("""
2 ranks, ring : least  8, ours 13.1
2 ranks, swap : least 10, ours 11.0
4 ranks, heads: least 12, ours  9.0
""")
    assert head == ["ranks", "", "least", "ours"]
    assert rows[0] == ["2", "ring", "8", "13.1"]
    assert rows[2] == ["4", "heads", "12", "9.0"]


def test_between_two_words_a_dot_dot_dot_stands_for_the_number():
    head, rows = read("""
n =   128: pairs are 11% of the operations
n =   512: pairs are 33% of the operations
n = 8,192: pairs are 89% of the operations
""")
    assert head == ["n", "pairs are … of the operations"]
    assert rows[2] == ["8,192", "89%"]


def test_a_range_and_its_brackets_stay_together():
    head, rows = read("""
1,024 causal, forward  speed 0.56 (0.54 to 0.58), memory 2.43
4,096 causal, forward  speed 0.91 (0.84 to 0.94), memory 2.05
1,024 full, training   speed 0.77 (0.76 to 0.78), memory 1.55
""")
    assert head == ["", "speed", "memory"]
    assert rows[2] == ["1,024 full, training", "0.77 (0.76 to 0.78)", "1.55"]


def test_how_many_of_them_is_said_once_and_true_is_a_value():
    head, rows = read("""
keys     equivariant True   right in 9 of 27, or 3 of 5
queries  equivariant True   right in 8 of 27, or 1 of 5
heads    equivariant True   right in 7 of 27, or 2 of 5
""")
    assert head == ["", "equivariant", "right in … of 27", "or … of 5"]
    assert rows[1] == ["queries", "True", "8", "1"]


def test_the_last_of_several_words_is_no_rows_name():
    """On a phone it stood above the row, apart from the others."""
    lines = "error up to  in any order  in causal order\n" + "\n".join(
        f"{bound:11}  {'yes':>12}  {'no':>15}" for bound in (0.6, 0.667, 0.75)
    )
    (table,) = drawn(lines)
    assert "in any order" in table
    assert "named" not in table
    alone = "tokens  who\n" + "\n".join(
        f"{n:6}  0.25  {n + 0.5:20}  {who}, a name that is long, on and on"
        for n, who in enumerate(("one", "two", "three"))
    )
    (table,) = drawn(alone.partition("\n")[2])
    assert "named last" in table


def test_a_number_named_by_a_number_stands_below_it():
    head, rows = read("""
none    8: 1.00, 64: 0.73
root    8: 1.00, 64: 1.00
learned 8: 1.00, 64: 0.99
""")
    assert (head, rows[2]) == (["", "8", "64"], ["learned", "1.00", "0.99"])


@pytest.mark.parametrize(
    "text",
    [
        "I see 3 cats in 5 rooms.\nI see 4 cats in 6 rooms.\nI see 9 in 1.",
        "x = 3, y = f(4)\nx = 5, y = f(6)\nx = 7, y = f(8)",
        "a: [1, 2], b 3\na: [3, 4], b 5\na: [5, 6], b 7",
        "key 'a', size 3\nkey 'b', size 4\nkey 'c', size 5",
        "10 May 2056 -> 2056\n11 May 2057 -> 2057\n12 May 2058 -> 2058",
        "1.6 times 1.1 is 1.8\n0.7 times 1.1 is 0.8\n0.3 times 0.2 is 0.1",
        "x (5, 7)\nW_q (7, 2)\nW_k (7, 3)",
        "scores: 36\nattention: 72\nprojections: 96",
        "a cat, a dog\na cat, a cow\na cat, a fox",
        "after 3: ahead 1 2 3\nafter 4: ahead 2 3 4\nafter 5: ahead 3 4 5",
        "both 1.00 or more\nfollows 1.00 or more\nstays 1.00 or more",
        "a 0.5, b 1, b 2\na 0.6, b 3, b 4\na 0.7, b 5, b 6",
        "sized 3, off 1\nsized 4, off 2",
    ],
)
def test_sentences_code_and_lists_are_no_table(text):
    assert drawn(text) == []


def test_a_table_broken_by_the_names_of_its_rows_stays_text():
    rows = [
        f"{name} {rate}: found 1, lost 2"
        for name in ("one", "two, softly")
        for rate in (0.1, 0.3, 0.5)
    ]
    assert len(parts("\n".join(rows))) == 2
    assert drawn("\n".join(rows)) == []


def test_ranges_below_a_header_are_a_table_and_without_one_are_none():
    rows = ["a   0.1 to 0.2   0.30 ± 0.01", "bc  0.3 to 0.4   0.40 ± 0.02"]
    assert drawn("\n".join(["      least    mean", *rows])) != []
    assert drawn("\n".join(["      3 and 4  5 is", *rows])) == []


def test_a_table_wider_than_the_page_is_in_smaller_letters():
    for ranges, wide in ((3, False), (5, True)):
        cells = "  ".join(["0.54 (0.43 to 0.66)"] * ranges)
        head = "  ".join(f"{f'word {n}':19}" for n in range(ranges))
        (html,) = drawn("\n".join([f"who  {head}", *[f"one  {cells}"] * 2]))
        assert (" wide" in html) == wide


WIDE = ["", "a column of numbers", "another of them"]


@pytest.mark.parametrize(
    ("first", "last", "marks"),
    [
        (["8", "16", "32"], ["0.00 / 0.37", "0.11 / 0.62", "1 / 1"], []),
        (["8", "16", "32"], ["1.4 to 1.9", "2.0 to 2.1", "1 to 3"], []),
        (["8", "16", "32"], ["6 of 8 pairs", "5 of 8 pairs", "–"], []),
        (["0.6", "0.7", "0.8"], ["no", "yes", "yes"], []),
        (["0.6", "0.7", "0.8"], ["sdpa", "flex", "ours"], ["named", "last"]),
        (["keep", "block", "0/1"], ["1", "2", "3*"], ["named", "first"]),
    ],
)
def test_a_rows_name_is_in_words(first, last, marks):
    """On a phone two numbers, the last of a row, stood above it."""
    rows = [
        [one, "0.5", other] for one, other in zip(first, last, strict=True)
    ]
    assert named(rows, WIDE) == marks


def test_a_line_as_long_as_a_phones_goes_on_in_the_next():
    """Of thirty-eight letters the last was cut off."""
    line = "e to the half is 1.649, and e is 2.718"
    assert looks([line]) == ["prose-lines"]
    assert looks([line[:36]]) == []
