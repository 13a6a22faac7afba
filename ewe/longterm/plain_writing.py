"""A turn as its writer would have written it with more care: apostrophes and capitals that people leave out."""

import re

_APOSTROPHES = re.compile(
    r"\b(?:(?P<not>do|does|did|ca|wo|is|are|was|were|have|has|had|could|would|should)nt|(?P<be>i)m|(?P<have>i|we|"
    r"they)ve|"
    r"(?P<is>he|she|that|there|what)s)\b",
    re.IGNORECASE,
)
_KINS = re.compile(
    r"\b((?:my|our) (?:\w+ )?(?!(?:has|was)\b)\w+[^\Ws])s(?= (?:getting|coming|going|moving|having|staying|been)\b)",
    re.IGNORECASE,
)
# "Me and Jess", "Jess and me" as the subject.
_ME_AND = re.compile(
    r"(?:^|(?<=[.!?] ))me and (?P<who>(?:my )?[^\W\d]+)(?= [a-z]+)|"
    r"\b(?P<name>[A-Z][a-z]+) and me(?= (?:are|were|have|got|had|went)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_SMALL_I = re.compile(r"(?<![\w.'’])i(?=[ '’])")
# What asks to keep something in mind, or puts something right, in front of what is to be kept: "Remember that I ...".
_KEEP = re.compile(
    r"(?:^|(?<=[.!?\n]\s)|(?<=\n))(?:(?:ok(?:ay)?|hey|hi|also|and|btw|oh|no|sorry|please|pls|plz)[,!]? )*"
    r"(?:remember|don['’]t forget|do not forget|(?:keep|bear) in mind|(?:make a |take )?note|just so you know|"
    r"for future reference|correction|reminder|note to self|I meant(?: to say)?)(?: that\b)?[,:]? "
    r"(?=(?:I|we)\b(?! (?:told|said|asked|mentioned))|"
    r"(?:(?:my|our) (?:[^\W\d][\w'’-]* ){1,5}?|(?-i:[A-Z])[^\W\d]+ )"
    r"(?:is|are|was|has|have|had|can|can['’]?t|lives?|works?|hates?|likes?|needs?)\b)",
    re.IGNORECASE,
)
_INCHES = re.compile(r"(?<=\d)[\"”]")


def plainly_written(text: str) -> str:
    """A turn with the apostrophes and the capital I that people leave out when they type."""
    text = re.sub(r" & (?=[a-z])", " and ", text)
    text = _ME_AND.sub(lambda found: f"{_capital(found['who'] or found['name'])} and I", text)
    text = _KEEP.sub("", text)
    text = _KINS.sub(r"\1's", text)
    return _SMALL_I.sub("I", _APOSTROPHES.sub(_with_apostrophe, _INCHES.sub("", text)))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _with_apostrophe(match: re.Match[str]) -> str:
    if match["not"]:
        return f"{match['not']}n't"
    [(kind, word)] = ((kind, word) for kind, word in match.groupdict().items() if word)
    return f"{word}'{ {'be': 'm', 'have': 've', 'is': 's'}[kind] }"
