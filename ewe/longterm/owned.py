"""Whose something is, where people leave that out ("Wife's a nurse", "The kids hate it"), and "is" for "'s"."""

import re

from ewe.text.english import DETERMINERS, NOUNS_IN_ING, PREPOSITIONS, is_past, words_of

_BEGINS = r"(?:^|(?<=[,;.!:] )|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bbecause )|(?<=\bsince ))"
_PERSON = (
    r"(?:mum|mom|mam|dad|mother|father|brother|sister|son|daughter|husband|hubby|wife|missus|partner|girlfriend|"
    r"boyfriend|gf|bf|gran|granny|nan|grandma|grandpa|grandad|uncle|aunt|cousin|nephew|niece|boss|manager|landlord|"
    r"landlady|flatmate|roommate|housemate|doctor|gp|therapist|eldest|youngest|(?:mother|father)[- ]in[- ]law)"
)
_THEIRS = r"(?:kids|children|boys|girls|twins|baby|toddler|dog|cat|puppy|kitten|lad|in-laws|marriage|parents)"
_THING = (
    r"(?:budget|deadline|insurance|heating|mortgage|rent|stack|flat|house|car|boiler|team|job|contract|passport|visa|"
    r"exams?|knees?|back|company|firm|garden|battery|commute|degree|surgery|shift|school|bike|van|phone|laptop|"
    r"blood (?:pressure|sugar)|cholesterol)"
)
_IS = (
    r"(?: here)?(?:['’]s\b| (?:is|was|are|were|has|have|had|will|can|won['’]t|isn['’]t|wasn['’]t|aren['’]t|ends?|"
    r"starts?|got|broke|died|failed)\b)"
)
_WHICH = r"(?:(?:new|eldest|youngest|older|younger) )?"
_UNOWNED = re.compile(
    rf"{_BEGINS}(?:the (?={_THEIRS}|wife|husband|missus|eldest|youngest)|"
    rf"(?={_WHICH}(?:{_PERSON}|(?:{_THEIRS}|{_THING}){_IS})))"
    rf"(?P<noun>{_WHICH}(?:{_PERSON}|{_THEIRS}|{_THING}))"
    rf"(?={_IS}| \w+(?:ed|s)\b| (?:hate|love|want|need|like|live|go)\b)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    rf"{_BEGINS}(budget|salary|rent|mortgage|pension|height|weight)(?: of)? ((?:about |around |under |max )?[£$€]?\d)",
    re.IGNORECASE,
)
_SHORT = re.compile(
    rf"{_BEGINS}(?P<who>(?:my|our|the) (?:[\w-]+ ){{0,3}}?[\w-]+)['’]s (?=(?P<rest>[^,;.!?]+))", re.IGNORECASE
)
_NEXT_CLAUSE = re.compile(
    r" (?:(?:and|but|so) (?:I|we|he|she|they|it|my|our|the)|because|when|if|who|which|that|while)\b"
)
_VERBS = words_of(
    """am is are was were do does did have has had can could will would should must might live work like love hate want
    need go say says think ate drank drove rode wore threw broke woke forgot felt slept bit chewed hid"""
)
_PERFECT = words_of("been got had gone")
_OF_TIMES = words_of(
    """birthday funeral party graduation anniversary appointment recipe house flat car side family mum mom dad
    mother father brother sister son daughter husband wife name first second last orders"""
)


def with_owner(sentence: str) -> str:
    """ "Wife's a nurse" as "my wife is a nurse"; "my wife's sister is one" stays."""
    sentence = _AMOUNT.sub(lambda found: f"my {found[1].lower()} is {found[2]}", sentence)
    return _SHORT.sub(_long, _UNOWNED.sub(lambda found: f"my {found['noun'].lower()}", sentence))


def _long(match: re.Match[str]) -> str:
    rest = _NEXT_CLAUSE.split(match["rest"])[0].lower().split()
    if not (match["who"].endswith("name") or _follows_is(rest)):
        return match[0]
    verb = "has" if rest[0] in _PERFECT else "is"
    return f"{match['who']} {verb} "


def _follows_is(rest: list[str]) -> bool:
    """Whether what is behind a noun's "'s" is said of it: nothing else in it can be its verb."""
    first = rest[0]
    if first.endswith("ing") and first not in NOUNS_IN_ING:
        return True
    if first in PREPOSITIONS | DETERMINERS | _PERFECT or first in ("not", "also", "very", "really", "so", "too"):
        return True
    return first not in _OF_TIMES | NOUNS_IN_ING and not any(map(_is_verb, rest, rest[1:]))


def _is_verb(before: str, word: str) -> bool:
    if word in _VERBS or word.endswith(("n't", "n’t", "'s", "’s", "'ll", "’ll")):
        return True
    if before in PREPOSITIONS | DETERMINERS or before in ("and", "or", "to", "not", "very") or before.isdigit():
        return False
    return is_past(word) or (word.endswith("s") and not word.endswith("ss"))
