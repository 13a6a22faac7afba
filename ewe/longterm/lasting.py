"""Which statements of a chat are worth keeping: what lasts, and what happened if a when, where or who is told."""

import re

from ewe.longterm.passing import is_said_in_passing
from ewe.text.english import DETERMINERS, FUNCTION_WORDS, NUMBER_WORDS, PREPOSITIONS, is_irregular_past, words_of
from ewe.text.words import words

_VAGUE = FUNCTION_WORDS | words_of(
    """dream dreams happen happens happened going keep keeps pushing push forward positive anything everything
    something nothing way thing things stuff vibes journey moment moments make makes made making get gets got gonna
    want wants wanna great good awesome amazing feel feeling feels best better real really lot lots give gives up
    try trying hard handle reach goal goals difference support matter matters help helps remember believe sure
    excited talked spoke some pretty cool can't don't i'm i'll we're we'll i've we've it's idea fun let dont nice
    means mean take challenge challenges staying stay ahead looking chasing chase won't living stop anyone come true
    ready everyone focus success chance for"""
)
# Verbs in the past that tell what is still so, or what changes a life, even without a when or where.
_LASTING = words_of(
    """was were used wanted liked loved hated preferred enjoyed had sold bought moved quit left lost died passed born
    married divorced retired broke tore hurt injured adopted finished graduated promoted started stopped gave joined
    grew met studied learned learnt changed decided became split lived worked taught owned inherited belonged kept
    failed"""
)
_AUXILIARIES = words_of(
    "am is are has have do does can will would don't doesn't haven't hasn't can't won't wouldn't isn't aren't i'm "
    "we're i've we've i'll we'll i'd we'd never"
)
_LASTING_THINGS = words_of(
    """dog puppy cat kitten pet hamster rabbit horse parrot car van motorbike house flat apartment job promotion raise
    mortgage baby tattoo divorce visa degree diagnosis"""
)
_SAME = words_of("put set cut read hit let shut")  # the past as the present
_HAVE = words_of("have has i've we've")
_PLACED = re.compile(
    r"\d|(?<=\s)(?!I\b|I['’])[A-Z]|\b(?:ago|last|yesterday|when|since|until|after|before|for|in|at|from|as|during|while|"
    r"this|every|once|outside|well|fine|badly|(?:days?|weeks?|months?|years?)|my|our)\b(?! (?:all|least|first|me)\b)"
)
# How a statement begins that tells something: with its subject, with a when or where, or with another subject's "is".
_BEGINNINGS = (
    PREPOSITIONS
    | DETERMINERS
    | words_of(
        """when while now then next last once today yesterday tomorrow tonight sometimes usually back just one two
        three four both all most only still because although though currently recently previously nowadays i we my our
        i'm i've i'd i'll we're we've we'd we'll"""
    )
)


def lasts(statement: str) -> bool:
    """Whether a statement is worth keeping beyond the talk in which it was said."""
    spoken = words(statement)
    return (
        not set(spoken) <= _VAGUE
        and not is_said_in_passing(statement)
        and (
            spoken[0] in _BEGINNINGS
            or spoken[1:3] == ["and", "i"]
            or spoken[0] == "they"
            or spoken[0][-3:] == "ing"
            or not _AUXILIARIES.isdisjoint(spoken[1:4])
        )
        and not _is_small_event(statement, spoken)
    )


def _is_small_event(statement: str, spoken: list[str]) -> bool:
    """Whether something that is over is told without when, where or who: "I dropped a glove"."""
    verb = next(
        (
            word
            for word in spoken[: 3 if spoken[0] in ("i", "we") else 5]
            if word in _AUXILIARIES | _LASTING or _is_past(word)
        ),
        "",
    )
    if verb in _HAVE:  # "I've put up egg boxes"
        verb = next(iter(spoken[spoken.index(verb) + 1 :]), "")
        verb = verb if (_is_past(verb) and verb not in ("got", "been")) or verb in _SAME else ""
    if not verb or verb in _AUXILIARIES | _LASTING or "just" in spoken[:2]:
        return False
    if verb == "got" and not _LASTING_THINGS.isdisjoint(spoken):
        return False
    return NUMBER_WORDS.keys().isdisjoint(spoken) and _PLACED.search(statement.partition(verb)[2]) is None


def _is_past(word: str) -> bool:
    return (
        (word.endswith("ed") and len(word) > 4)
        or word in ("didn't", "couldn't")
        or (is_irregular_past(word) and not word.endswith("s"))
    )
