"""Where in a sentence a claim was taken from, found by its words."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from ewe.text.words import fold
from ewe.verification.stems import stem
from ewe.verification.wordlists import FUNCTION_WORDS

_WORD = re.compile(r"[^\W_]+")


def align(claim: str, sentence: str) -> tuple[int, int]:
    """Code points [start, end) of `sentence` that hold the claim's words, from the first to the last one matched.

    Content words are matched in order by their stems; a claim that shares none with the sentence gets all of the
    sentence without surrounding white space. Always 0 <= start < end for a sentence that is not blank.
    """
    wanted = [stem(fold(match.group())) for match in _WORD.finditer(claim)]
    places = list(_WORD.finditer(sentence))
    given = [stem(fold(match.group())) for match in places]
    matcher = SequenceMatcher(a=wanted, b=given, autojunk=False)
    matched = [at for block in matcher.get_matching_blocks() for at in range(block.b, block.b + block.size)]
    content = [at for at in matched if fold(places[at].group()) not in FUNCTION_WORDS]
    if content:
        return places[content[0]].start(), places[content[-1]].end()
    start = len(sentence) - len(sentence.lstrip())
    return start, max(len(sentence.rstrip()), start)
