"""Answers that are begun for a model, which then goes on with them: their first sentence may have begun there."""

from ewe.text.sentences import SentenceSplitter

_REACH = 4000  # Code points before the end of a beginning in which its last sentence is looked for.


def open_sentence(prefill: str) -> str:
    """How a beginning ends: its last sentence, which may go on, with the white space behind it."""
    end = prefill[-_REACH:]
    spans = SentenceSplitter().split(end)
    return end[spans[-1][0] :] if spans else ""


def in_context(prefill: str, before: str, sentence: str) -> tuple[str, str]:
    """What stands before a sentence of a text, and the whole sentence, of which the first may have begun earlier.

    before: the text up to it, without the prefill.
    """
    given = prefill + before
    if not prefill or before.strip():
        return given, sentence
    begun = open_sentence(prefill)
    open_text = begun + before + sentence
    start, _ = SentenceSplitter().split(open_text)[-1]
    start = min(start, len(begun + before))
    return given[: len(prefill) - len(begun) + start], open_text[start:]
