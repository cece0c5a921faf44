"""The generated texts are what they say, and each task needs what it asks."""

import contextlib
import datetime
import math
from collections import Counter
from functools import partial
from itertools import islice

import pytest
import torch

from selfattn.data import (
    agreement,
    coreference,
    dates,
    digits,
    evidence,
    induction,
    language,
    relations,
    sentiment,
    sequences,
    series,
    tales,
)

# Each task as a function of a size and a seed.
TASKS = {
    "agreement": agreement.agreement_batches,
    "coreference": coreference.coreference_batches,
    "dates": dates.date_batches,
    "induction": induction.induction_batches,
    "pattern": lambda size, *, seed: evidence.question_batches(
        "pattern", size, seed=seed
    ),
    "language": lambda size, *, seed: language.character_batches(
        size, n=20, seed=seed
    ),
    "sentiment": sentiment.sentiment_batches,
    "copied": lambda size, *, seed: sequences.sequence_batches(
        sequences.copied, size, seed=seed
    ),
    "series": series.series_batches,
}


def listed(batch):
    """A batch as numbers that can be compared."""
    parts = batch if isinstance(batch, tuple) else (batch,)
    return [x.tolist() if torch.is_tensor(x) else x for x in parts]


@pytest.mark.parametrize("task", TASKS)
def test_a_seed_gives_the_same_batches_and_another_gives_others(task):
    def some(seed):
        return [*map(listed, islice(TASKS[task](5, seed=seed), 3))]

    assert some(0) == some(0)
    assert some(0) != some(1)
    assert some(0)[0] != some(0)[1]


@pytest.mark.parametrize("task", [*TASKS, "digits"])
def test_nobody_elses_dice_are_thrown(task):
    before = torch.get_rng_state()
    if task == "digits":
        digits.handwritten_digits(seed=0)
    else:
        next(TASKS[task](5, seed=0))
    assert torch.equal(torch.get_rng_state(), before)


# Dates


def test_a_date_and_its_answer_are_one_day():
    styles, early = Counter(), 0
    formats = ("%d %B %Y", "%B %d, %Y", "%Y, %B %d")
    for source, target in islice(dates.date_batches(50, seed=0), 20):
        assert source.shape == (50, dates.LONGEST)
        assert target.shape == (50, dates.N_TARGET)
        for one, other in zip(source, target, strict=True):
            text = dates.decode(one)
            day = datetime.date.fromisoformat(dates.decode(other))
            assert dates.FIRST <= day <= dates.LAST
            early += day.year < 2000
            for form in formats:
                with contextlib.suppress(ValueError):
                    parsed = datetime.datetime.strptime(text, form)
                    assert parsed.date() == day
                    styles[form] += 1
    assert styles.total() == 1000  # each in one style, and in no other
    # A third each, and 30 years of 100: five deviations of 15 and 14.5.
    assert all(abs(styles[form] - 333) < 75 for form in formats)
    assert abs(early - 300) < 73
    assert dates.decode(dates.encode("31 May 1999   ")) == "31 May 1999"


def test_a_letter_that_no_date_has():
    with pytest.raises(ValueError, match="no other characters than"):
        dates.encode("3. März 2021")


# Sequences


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (sequences.copied, list),
        (sequences.reversed_order, lambda x: x[::-1]),
        (sequences.in_order, sorted),
    ],
)
def test_sequences_are_copied_reversed_and_sorted(answer, check):
    lengths, tokens_seen = set(), Counter()
    batches = sequences.sequence_batches(answer, 7, seed=0)
    for tokens, target in islice(batches, 60):
        lengths.add(tokens.shape[1])
        for one, other in zip(tokens.tolist(), target.tolist(), strict=True):
            assert other == check(one)
            tokens_seen.update(one)
    assert lengths == set(range(sequences.SHORTEST, sequences.LONGEST + 1))
    assert set(tokens_seen) == set(range(sequences.N_TOKENS))


def test_sequences_of_a_length_that_one_asks_for():
    batches = sequences.sequence_batches(sequences.copied, 3, seed=0, n=17)
    assert next(batches)[0].shape == (3, 17)
    with pytest.raises(ValueError, match="must have a token, but n=0"):
        next(sequences.sequence_batches(sequences.copied, 3, seed=0, n=0))


# Induction


def test_the_last_token_stood_before_and_the_answer_behind_it():
    places = Counter()
    batches = induction.induction_batches(50, seed=0)
    for tokens, target, where in islice(batches, 20):
        assert tokens.shape == (50, induction.LENGTH)
        for text, answer, place in zip(
            tokens.tolist(), target.tolist(), where.tolist(), strict=True
        ):
            assert len(set(text)) == induction.LENGTH - 1
            assert text.index(text[-1]) == place - 1
            assert text[place] == answer
            places[place] += 1
    # Anywhere: 1000 in 14 places, five standard deviations of 8.
    assert set(places) == set(range(1, induction.LENGTH - 1))
    assert all(abs(n - 1000 / 14) < 41 for n in places.values())


# Agreement


def test_the_verb_agrees_with_its_subject_and_not_with_its_neighbour():
    fooled, misled, lengths = Counter(), 0, set()
    batches = agreement.agreement_batches(20, seed=0)
    for tokens, target, where in islice(batches, 100):
        lengths.add((where, tokens.shape[1]))
        for sentence, verb in zip(tokens, target.tolist(), strict=True):
            words = agreement.decode(sentence).split()
            nouns = [
                word in agreement.PLURAL
                for word in words
                if word in agreement.SINGULAR + agreement.PLURAL
            ]
            assert words[where - 1] == "the"
            assert not set(words[: where - 1]) - set(agreement.OPENERS)
            assert (words[where] in agreement.PLURAL) == verb == nouns[0]
            fooled[len(nouns) - 1] += 1
            misled += len(nouns) > 1 and nouns[-1] != verb
    # Up to three words before it, and up to three nouns of three words.
    assert {where for where, _ in lengths} == {1, 2, 3, 4}
    assert {(n - where - 1) // 3 for where, n in lengths} == {0, 1, 2, 3}
    # Half of the neighbours have the other number: five deviations.
    others = fooled.total() - fooled[0]
    assert abs(misled / others - 0.5) < 5 * 0.5 / math.sqrt(others)


# Coreference


def test_only_the_last_word_tells_who_it_is():
    answers = Counter()
    batches = coreference.coreference_batches(50, seed=0)
    for tokens, target, where in islice(batches, 20):
        assert tokens.shape == (50, 12)
        for sentence, answer, place in zip(tokens, target, where, strict=True):
            words = coreference.decode(sentence).split()
            who = coreference.WORDS[answer]
            assert words[coreference.IT] == "it"
            assert words[place] == who
            of_animal = words[-1] in coreference.OF_ANIMALS
            assert of_animal != (words[-1] in coreference.OF_PLACES)
            assert of_animal == (who in coreference.ANIMALS)
            answers[int(place), of_animal] += 1
    # Neither where a noun stands nor what it is gives it away: each of the
    # four is 250 of 1000, give or take five deviations of 13.7.
    assert set(answers) == {(p, a) for p in (1, 6) for a in (False, True)}
    assert all(abs(n - 250) < 69 for n in answers.values())


# Sentiment


def praises(words):
    """Read the last clause, the other way: by signs."""
    last = words[words.index("but") + 1 :] if "but" in words else words
    sign = 1 if set(last) & set(sentiment.PRAISE) else -1
    return sign * (-1 if "not" in last else 1) > 0


def test_what_is_said_last_decides_and_not_turns_it():
    labels = counted = total = 0
    batches = sentiment.sentiment_batches(50, seed=0)
    for tokens, lengths, label in islice(batches, 20):
        assert tokens.shape == (50, sentiment.LONGEST)
        for text, n, praise in zip(tokens, lengths, label, strict=True):
            words = sentiment.decode(text).split()
            assert len(words) == n
            assert not text[n:].any()
            assert praises(words) == bool(praise)
            score = sum(
                (word in sentiment.PRAISE) - (word in sentiment.BLAME)
                for word in words
            )
            counted += (score > 0) == bool(praise) if score else 0.5
            labels += int(praise)
            total += 1
    # Half of them praise, and counting words is right half of the time:
    # five standard deviations of 0.016.
    assert abs(labels / total - 0.5) < 0.08
    assert abs(counted / total - 0.5) < 0.08


# A language


def test_the_entropy_is_that_of_the_sentences():
    """Of ten thousand, by their own frequencies, choice by choice."""
    generator = torch.Generator().manual_seed(0)
    told = [*islice(language.sentences(generator), 10_000)]
    characters = sum(map(len, told)) / len(told)
    seen = Counter()
    for sentence in told:
        words = sentence.removesuffix(". ").split()
        verb = next(i for i, x in enumerate(words) if x in language.VERBS)
        parts = [words[0], " ".join(words[1 : verb - 1]), words[verb - 1]]
        parts += [words[verb], words[verb + 1]]
        parts += [" ".join(words[verb + 2 : -1]), words[-1]]
        for slot, word in zip(enumerate(language.SLOTS), parts, strict=True):
            assert word in slot[1]
            seen[slot[0], word] += 1
    nats = -sum(n / 1e4 * math.log(n / 1e4) for n in seen.values())
    # 10,000 draws: the entropy of a choice is off by about 0.0004, and the
    # length by 0.03 of 30 characters.
    assert nats / characters == pytest.approx(
        language.nats_per_character(), rel=5e-3
    )


def test_the_batches_are_one_text():
    [text] = next(language.character_batches(1, n=600, seed=3))
    rows = next(language.character_batches(6, n=100, seed=3))
    assert torch.equal(text, rows.flatten())
    first, second = islice(language.character_batches(2, n=150, seed=3), 2)
    assert torch.equal(text, torch.cat([first, second]).flatten())
    with pytest.raises(ValueError, match="must have a character, but n=0"):
        next(language.character_batches(2, n=0, seed=3))


def test_a_letter_that_the_language_has_not():
    with pytest.raises(ValueError, match="has no other characters than"):
        language.encode("The cat")


# Series


def test_a_series_comes_round_after_its_period():
    x, period = next(series.series_batches(2000, seed=0, n=60))
    assert x.shape == (2000, 60)
    assert set(period.tolist()) == set(
        range(series.SHORTEST, series.LONGEST + 1)
    )
    for p in period.unique().tolist():
        same = x[period == p]
        error = same[:, p:] - same[:, :-p]
        # The noise of two steps; some 10,000 of them.
        wanted = math.sqrt(2) * series.NOISE
        assert error.std().item() == pytest.approx(wanted, rel=0.05)
        other = same[:, p - 1 :] - same[:, : 1 - p]
        assert other.std().item() == pytest.approx(math.sqrt(2), rel=0.15)
    with pytest.raises(ValueError, match="must have a step, but n=0"):
        next(series.series_batches(2, seed=0, n=0))


# Digits


def test_pictures_are_dealt_out_and_none_is_in_both_parts():
    train, test = digits.handwritten_digits(seed=0)
    assert len(train.images) + len(test.images) == digits.N_PICTURES
    for part in (train, test):
        assert part.images.shape == (len(part.labels), 8, 8)
        assert part.images.min() == 0 and part.images.max() == 1
        share = part.labels.bincount() / len(part.labels)
        assert len(share) == digits.N_CLASSES
        assert (share - 0.1).abs().max() < 0.05
    mine = {tuple(x.flatten().tolist()) for x in train.images}
    assert not mine & {tuple(x.flatten().tolist()) for x in test.images}
    other, _ = digits.handwritten_digits(seed=1)
    assert not torch.equal(other.labels, train.labels)
    again, _ = digits.handwritten_digits(seed=0)
    assert torch.equal(again.images, train.images)


def test_a_picture_and_its_label_stay_together():
    """The nearest picture of the other part nearly always has its digit."""
    train, test = digits.handwritten_digits(seed=0)
    far = torch.cdist(test.images.flatten(1), train.images.flatten(1))
    right = train.labels[far.argmin(dim=-1)] == test.labels
    assert right.float().mean() > 0.97  # measured: 0.99


@pytest.mark.parametrize("n_test", [-1, 1797])
def test_too_many_pictures_to_keep_back(n_test):
    with pytest.raises(ValueError, match=f"left .* but n_test={n_test}"):
        digits.handwritten_digits(seed=0, n_test=n_test)


def test_no_default_changes_a_task():
    """With another default type, a seed drew other batches; with another
    default device, none at all."""
    from selfattn.data.series import series_batches

    wanted = next(series_batches(3, seed=1))
    for dtype in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            drawn = next(series_batches(3, seed=1))
        finally:
            torch.set_default_dtype(torch.float32)
        assert all(map(torch.equal, drawn, wanted))
    with torch.device("meta"):
        drawn = next(series_batches(3, seed=1))
    assert all(map(torch.equal, drawn, wanted))


DRAWN = {
    "digits": lambda _: digits.handwritten_digits(seed=0)[0],
    "echoes": partial(tales.echoes, 4),
    "agreements": partial(tales.agreements, 4),
    "coreferences": partial(tales.coreferences, 4),
    "held_digits": partial(relations.held_digits, 4),
    "sentences": lambda chance: [*islice(language.sentences(chance), 3)],
    "places": partial(evidence.places, 4, 6, 2),
}


@pytest.mark.parametrize("drawn", DRAWN)
def test_what_is_drawn_is_where_its_generator_is(drawn):
    """Under another default device pictures and their labels were garbage,
    and a tale was PyTorch's own error."""

    def one():
        return listed(tuple(DRAWN[drawn](torch.Generator().manual_seed(0))))

    wanted = one()
    with torch.device("meta"):
        assert one() == wanted


A, B = evidence.A, evidence.B
ANSWERS = {
    "pattern": lambda row: "ab" in row,
    "latest": lambda row: [x for x in row if x in "ab"][-1] == "b",
    "place": lambda row: row[evidence.PLACE] == "b",
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_question_has_its_answer_and_half_of_them_are_yes(question):
    yes, marks, total = 0, Counter(), 0
    for x, y in islice(evidence.question_batches(question, 200, seed=3), 5):
        assert x.shape == (200, evidence.N) and y.dtype == torch.bool
        assert x.min() >= 0 and x.max() == evidence.N_TOKENS - 1
        for row, answer in zip(x.tolist(), y.tolist(), strict=True):
            text = "".join({A: "a", B: "b"}.get(t, ".") for t in row)
            assert ANSWERS[question](text) == answer
            yes, total = yes + answer, total + 1
            marks[text.count("a") + text.count("b")] += 1
    assert abs(yes / total - 0.5) < 0.05
    assert set(marks) == {{"pattern": 2, "latest": 4, "place": 7}[question]}


def test_a_pattern_that_is_not_there_has_its_letters_in_the_same_order():
    x, y = next(evidence.question_batches("pattern", 300, seed=0))
    first, second = ((x == mark).float().argmax(dim=1) for mark in (A, B))
    assert ((second - first == 1) == y).all()
    assert (second > first).all()
    assert {*first.tolist()} == {*range(evidence.N - 1)}


@pytest.mark.parametrize(
    "begun",
    [
        lambda: series.series_batches(10**9, seed=0),
        lambda: series.series_batches(2, seed=0, n=10**12),
        lambda: language.character_batches(10**6, n=10**6, seed=0),
        lambda: sequences.sequence_batches(sequences.copied, 2**62, seed=0),
    ],
)
def test_a_batch_that_nobody_could_hold_is_not_begun(begun):
    """PyTorch's allocator fell, or a text was written for hours."""
    with pytest.raises(ValueError, match=r"at most 16777216 texts, .*size="):
        next(begun())
