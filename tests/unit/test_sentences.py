from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ewe.text.sentences import SentenceSplitter, code_blocks, is_inside

SPLITTER = SentenceSplitter()
PIECES = st.lists(
    st.sampled_from(
        ["It cost 3", ".", "5", ". ", " ", "\n", "\n\n", "Dr", "U.S", "He", "left", "Open", "No", "1", "e.g", '"', ")",
         "(", "…", "?", "!", ". . .", "- ", "A", "K", "Smith", "and", "。", "次", "”", "“", "*", "#", "é", "\u200b",
         "🙂", "```", "~~~x", "p", "St", "1901", ":", ",", "।", "है"]
    ),
    max_size=14,
).map("".join)  # fmt: skip
TEXTS = st.one_of(PIECES, st.text(max_size=40), PIECES.map(lambda text: text * 2))


def texts(text, spans):
    return [text[start:end] for start, end in spans]


def split(text):
    return texts(text, SPLITTER.split(text))


def completed(text):
    return texts(text, SPLITTER.completed(text))


def test_abbreviations_initials_and_decimals_do_not_split():
    text = "Dr. A. B. Smith paid 3.5 million. He won the U.S. Open, e.g. in 1931. She left."
    assert split(text) == ["Dr. A. B. Smith paid 3.5 million.", "He won the U.S. Open, e.g. in 1931.", "She left."]


def test_quotes_stay_with_their_sentence():
    assert split('"I came." He left. (She stayed.) “Why?” he asked.') == [
        '"I came."', "He left.", "(She stayed.)", "“Why?” he asked."
    ]  # fmt: skip


def test_blank_lines_and_list_items_split():
    text = "# A life\n\nBorn in 1901\n- item one\n- item two\n1. third. It ends"
    assert split(text) == ["# A life", "Born in 1901", "- item one", "- item two", "1. third.", "It ends"]


def test_fences_split_and_what_lies_between_them_is_code():
    text = "So:\n```py\n# Paris is big.\nx = 1\n```\nOslo lies north. Use ```x``` here.\n~~~\nopen. End"
    assert split(text) == [
        "So:", "```py", "# Paris is big.", "x = 1", "```",
        "Oslo lies north.", "Use ```x``` here.", "~~~", "open.", "End",
    ]  # fmt: skip
    code = [is_inside(start, code_blocks(text)) for start, _ in SPLITTER.split(text)]
    assert code == [False, True, True, True, True, False, False, True, True, True]


def test_scripts_without_spaces_split():
    assert split("私は学生です。彼は「はい。」と言った。終") == ["私は学生です。", "彼は「はい。」", "と言った。", "終"]


def test_end_marks_of_other_scripts_split_before_a_space_and_full_stops_before_letters_without_capitals():
    assert split("यह एक नदी है। वह लंबी है।") == ["यह एक नदी है।", "वह लंबी है।"]
    assert split("هل هذا؟ نعم.") == ["هل هذا؟", "نعم."]
    assert split("It opened in 1902. 橋は高い。 Tall.") == ["It opened in 1902.", "橋は高い。", "Tall."]


def test_an_end_that_more_text_can_undo_is_not_complete():
    for text in [
        "It cost 3.",
        "It cost 3. ",
        "He met Dr. ",
        "He met Dr. S",
        "He won the U.S. O",
        'He left. "',
        "He left",
        "Wait. .",
    ]:
        assert completed(text) == [], text


def test_an_end_is_complete_as_soon_as_nothing_can_undo_it():
    assert completed("He left. S") == ["He left."]
    assert completed("He left.\n") == ["He left."]
    assert completed("He was born in 1901. S") == ["He was born in 1901."]
    assert completed("He left the U.S. She ") == ["He left the U.S."]
    assert completed("A heading\n\n") == ["A heading"]


def test_empty_and_blank_texts_have_no_sentences():
    assert SPLITTER.split("") == SPLITTER.completed("") == SPLITTER.split(" \n ") == []


@examples(150, 600)
@given(TEXTS)
def test_a_completed_sentence_stays_whatever_follows(text):
    final = SPLITTER.split(text)
    done = SPLITTER.completed(text)
    for cut in range(len(text)):
        spans = SPLITTER.completed(text[:cut])
        assert spans == final[: len(spans)] == done[: len(spans)]


@examples(100, 400)
@given(TEXTS)
def test_the_rest_after_a_completed_sentence_can_be_looked_at_alone(text):
    final = SPLITTER.split(text)
    for index, (_, end) in enumerate(SPLITTER.completed(text)):
        assert [(a + end, b + end) for a, b in SPLITTER.split(text[end:])] == final[index + 1 :]


@examples(100, 300)
@given(TEXTS)
def test_spans_are_ordered_tight_and_cover_everything_but_white_space(text):
    position = 0
    for start, end in SPLITTER.split(text):
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip() != ""
        position = end
    assert not text[position:].strip()


def test_long_text_without_spaces_takes_linear_work():
    calls = []
    splitter = SentenceSplitter()
    original = splitter._rules._breaks
    splitter._rules._breaks = lambda *window: calls.append(sum(map(len, window[::2]))) or original(*window)
    splitter.split(("x." * 5000 + " ") * 3)
    assert max(calls) < 500


def test_ordinary_words_are_no_abbreviations():
    for word in ["book", "life", "art", "century", "day", "park", "no", "works", "car", "series"]:
        assert split(f"It was the {word}. Keller left.") == [f"It was the {word}.", "Keller left."], word
        assert completed(f"It was the {word}. K") == [f"It was the {word}."], word


def test_abbreviations_before_numbers_and_names_do_not_split():
    for text in [
        "See No. 5 and Art. 3.",
        "Gen. Lee met Prof. Keller.",
        "Smith et al. Cambridge",
        "They met at Acme Corp. headquarters on Jan. 5.",
    ]:
        assert len(split(text)) == 1, text


def test_splitters_share_their_rules():
    """Rules of its own would hold each other, and the words in them, until the collector of garbage comes by."""
    assert SentenceSplitter()._rules is SentenceSplitter()._rules
