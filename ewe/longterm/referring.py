"""Whom "he", "she", "they" and "the dog" mean at the beginning of a statement: somebody of the speaker's just named."""

import re
from collections.abc import Iterable, Iterator, Mapping

from ewe.longterm.named_people import name_told_of
from ewe.text.english import is_irregular_past, words_of

_HE = words_of(
    """son lad dad father daddy brother husband hubby boyfriend uncle grandpa grandfather grandad granddad nephew
    bf stepson stepdad grandson fiance"""
)
_SHE = words_of(
    """daughter lass mum mom mam mother mummy sister wife girlfriend aunt auntie grandma grandmother gran nan niece
    gf missus landlady stepdaughter stepmum granddaughter fiancee"""
)
_THEY = words_of(
    """parents kids children twins sons daughters grandparents brothers sisters girls boys students dogs cats hens
    chickens rabbits horses plants tomatoes"""
)
_EITHER = words_of(
    """partner cousin friend boss manager colleague neighbour neighbor roommate flatmate housemate landlord doctor
    therapist teacher coach child kid baby toddler newborn eldest youngest tenant dog cat puppy kitten horse rabbit
    ex parrot greyhound whippet labrador lab spaniel terrier collie cockapoo poodle beagle husky hamster tortoise
    mate grandchild student lad rescue"""
) | {"year old"}
_IT = words_of(
    """car van bike motorbike laptop phone computer house flat apartment place garden boat oven boiler company school
    job number email address password passport birthday"""
)
_PET = r"(?:dog|cat|puppy|kitten|horse|rabbit|hamster|parrot|baby)"
_KNOWN = "|".join(sorted(_HE | _SHE | _THEY | _EITHER | _IT, key=len, reverse=True))
_NAMED = re.compile(
    r"\b(?:(?:my|our) (?:[a-z-]+ ){0,2}?|the (?=(?:dog|cat|puppy|kitten|horse|rabbit|baby|twins)\b)|"
    rf"(?:(?<=got )|(?<=have )|(?<=adopted )|(?<=bought ))(?:an?|another|a new) (?={_PET}\b(?! and an?\b)))"
    rf"(?:ex-)?(?P<who>{_KNOWN}|(?:mother|father|sister|brother|son|daughter)[- ]in[- ]law)\b"
    r"(?!-)(?P<name> (?-i:[A-ZÀ-ÖØ-ÞĀ-Ž])[^\W\d_]+)?",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"^(?P<word>he|she|they|his|her|their|it(?=(?:['’]s| is| has) (?!an? (?:bit|lot|shame|pity|mess|pain|nightmare|"
    r"long|good|great|nice|bad|big|real)\b)(?:an?|from|called|made|near|"
    r"now (?:an?|\d|\S+@)|\d+|\S+@\S+)\b))(?P<short>['’](?:s|ll|re|ve|d))?\b",
    re.IGNORECASE,
)
_OBJECT = re.compile(
    r"\b(?:him|them|her(?=[\s.!…]*$| (?:every|on|in|at|to|for|with|when|twice|once|a lot|because|and|but|again|back|"
    r"daily|each|very|\w+ly)\b))",
    re.IGNORECASE,
)
# "The twins", where "my twins" were named.
_THE = re.compile(rf"^the (?P<who>{_KNOWN})\b", re.IGNORECASE)
_BY_NAME = re.compile(r"(?:he|she|his|her)\b", re.IGNORECASE)
_LONG = {"s": " is", "ll": " will", "re": " are", "ve": " have", "d": " would"}


def resolved(sentences: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """The statements of each sentence of a turn with a beginning "he", "she" or "it" replaced where one person or thing
    named before fits it.

    So are "him", "her" and "them" behind "I" and "we".
    """
    named: dict[str, str] = {}
    for sentence, parts in sentences:
        told_of = ""  # by name, in the part before
        for part in parts:
            whole = _resolved(part, {"": told_of} if told_of and _BY_NAME.match(part) else named)
            yield whole
            named |= _named(part)
            told_of = name_told_of(whole)
        named |= _named(sentence)  # also in questions


def _resolved(part: str, named: Mapping[str, str]) -> str:
    if (pronoun := _PRONOUN.match(part)) is not None:
        return _replaced(part, pronoun, _meant(pronoun["word"], named))
    if (thing := _THE.match(part)) is not None and thing["who"].lower() in named:
        return f"My {part[thing.start('who') :]}"
    if re.match(r"(?:I|we)\b", part, re.IGNORECASE):
        return _OBJECT.sub(lambda match: _small(_meant(match[0], named)) or match[0], part)
    return part


def _named(text: str) -> dict[str, str]:
    """Who is named, with "the dog" as theirs, and "a puppy" that they got."""
    return {
        match["who"].lower(): re.sub("^(?:the|an?|another)(?: new)? ", "my ", match[0])
        for match in _NAMED.finditer(text)
    }


def _small(phrase: str) -> str:
    return phrase[:1].lower() + phrase[1:]


def _meant(pronoun: str, named: Mapping[str, str]) -> str:
    """The phrase for the only one named that fits, or nothing."""
    fitting = {phrase for who, phrase in named.items() if _fits(pronoun.lower(), who)}
    return next(iter(fitting)) if len(fitting) == 1 else ""


def _replaced(part: str, pronoun: re.Match[str], phrase: str) -> str:
    word = pronoun["word"].lower()
    if not phrase:
        return part
    if word in ("his", "her", "their"):
        return f"{phrase}'{'' if phrase.endswith('s') else 's'}{part[pronoun.end() :]}"
    short = (pronoun["short"] or "").strip("'’").lower()
    rest = part[pronoun.end() :]
    is_perfect = short == "s" and _is_perfect(rest)
    return f"{phrase}{' has' if is_perfect else _LONG.get(short, '')}{rest}"


def _is_perfect(rest: str) -> bool:
    """Whether what follows "he's" makes it "he has": "been", "lost his job", "stopped eating"."""
    spoken = rest.lower().split()
    if not spoken or not (spoken[0].endswith("ed") or is_irregular_past(spoken[0])):
        return False
    has_object = re.match(r"(?:me|us|him|her|it|my|our|his|their|the|an?|\w+ing)$", " ".join(spoken[1:2])) is not None
    return has_object or spoken[0] in ("been", "had", "got")


def _fits(pronoun: str, who: str) -> bool:
    if pronoun in ("they", "their", "them"):
        return who in _THEY
    if pronoun == "it":
        return who in _IT
    gendered = _HE if pronoun in ("he", "his", "him") else _SHE
    head = re.split(r"[- ]", who)[0] if "law" in who else who
    return not who or head in gendered or head in _EITHER
