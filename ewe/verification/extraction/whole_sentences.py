"""Claims without taking sentences apart: every sentence that states something is one claim, with its pronoun named."""

import re
from collections.abc import Sequence

from ewe.text.english import AUXILIARIES, FUNCTION_WORDS, PERSONAL, PREPOSITIONS, is_irregular_past, stem, words_of
from ewe.text.sentences import SentenceSplitter
from ewe.types import Claim, VerificationRequest
from ewe.verification.value_comparison.claims import read_context

EMPTY_NOUNS = words_of(
    """legacy impact influence inspiration talent skill skills ability abilities dedication passion contribution
    contributions work works career life achievements accomplishments reputation success generation generations
    place mark way ways world people figure figures fan fans audience audiences individual person man woman hearts
    heart memory history time times years day reader readers many millions lives others testament force name part
    role qualities quality things it"""
)
"""Nouns that alone give nothing to check."""
OPINIONS = words_of(
    """beautiful brave brilliant compelling captivating charismatic dedicated determined distinctive dynamic enduring
    engaging exceptional extraordinary fascinating gifted greatest icon iconic impressive incredible indelible
    inspiring invaluable kind lasting legend legendary memorable passionate powerful profound promising remarkable
    respected rich significant strong talented timeless tireless true unique unforgettable versatile vibrant
    visionary warm wonderful important influential notable great famous renowned celebrated prominent well-known
    successful outstanding immense tremendous great valuable beloved admired inspirational influential vital crucial
    essential integral interesting amazing best"""
)
OPINION_VERBS = words_of(
    "inspire remember miss celebrate admire love respect remain continue cherish resonate captivate"
)


_MAX_CHARACTERS = 2_000  # Longer "sentences" are tables or noise; what is said of their beginning would be no verdict.
_MIN_WORDS = 3
_QUESTION = re.compile(r"[?？][)\]*_\s]*\Z|\A\s*[\"“].*[?？][\"”]\s*\Z", re.DOTALL)
_MARKER = r"\s*(?:[-*•–#>]+\s+|\d{1,3}[.)]\s+)?"
_IMPORTANT = r"it (?:is|should be|must be)(?: also)? (?:important |worth |interesting |essential )?"
_NOTING = r"(?:to note|to mention|to remember|noted|noting|mentioning)(?: here)?"
_REMARK = re.compile(rf"{_MARKER}(?:(?:{_IMPORTANT}{_NOTING}|(?:please )?note|keep in mind) that,?\s+)?", re.IGNORECASE)
_META = re.compile(
    r"\b(?:as an ai|language model|my (?:knowledge|training)|cut-?off|hope this helps|the above"
    r"|this (?:answer|response|article|essay|list|summary)|here (?:is|are) (?:a|an|the|some)\b"
    r"|in this (?:article|essay|answer|section)|(?:be|make) sure (?:to|you)|feel free|thank you"
    r"|you(?:['’]\w+)?(?: may| might| would| are| also| be)* (?:should|want|wish|like|interested|looking)"
    r"|you have (?:any|more|questions))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ENDED = re.compile(r"[.!…][\"')\]”’*_\s]*\Z")
_HEDGES = words_of("possible possibly unclear unknown uncertain perhaps presumably likely")
_SMALL = FUNCTION_WORDS | words_of("also well way such as including known considered regarded became become has had")
_VAGUE = _SMALL | OPINIONS | EMPTY_NOUNS
_OPINION_STEMS = frozenset(stem(word) for word in OPINION_VERBS)
_SPEAKER = re.compile(r"(?:^|\s)I(?=['’]| [a-z])|(?:^(?:We|My|Our)|\s(?:me|my))(?=['’,.;]| [a-z])")
_NUMBERED = re.compile(r"\b([A-Z]\w+) I\b")
_PEOPLE = PERSONAL - words_of("who whom whose")
_THINGS = words_of("it its")
_OWNERS = words_of("his her its")


class WholeSentences:
    """Takes every sentence that states something for one claim; satisfies `ClaimExtractor`.

    Questions, opinions, remarks about the text, headings, advice to the reader ("you should") and what speaks of its
    writer give none; a "you" that means anybody does. "He" and its like are replaced by the name they stand for, from
    the prompt and the text before, where the sentence does not name anybody first. Never raises on odd text.
    """

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()

    def extract(self, requests: Sequence[VerificationRequest]) -> list[list[Claim]]:
        """Per sentence one claim or none, without a verdict; spans are code points of the sentence."""
        return [self._claims(request) for request in requests]

    def _claims(self, request: VerificationRequest) -> list[Claim]:
        sentence = request.sentence
        if not states_something(sentence):
            return []
        start = _REMARK.match(sentence).end()  # type: ignore[union-attr]  # it matches nothing, too
        text = self._named(request, sentence[start:].strip())
        return [Claim(text[:1].upper() + text[1:], start, len(sentence.rstrip()))]

    def _named(self, request: VerificationRequest, text: str) -> str:
        """The text with its first pronoun named, if it is clear what it stands for."""
        found = _open_pronoun(text)
        if found is None:
            return text
        name = read_context(request, self._splitter).pronoun(found[0].lower())
        if name is None or not (len(name.words) > 1 or name.text in request.prompt):
            return text  # One word may be a place or a thing; a wrong name is worse than none.
        follows = _WORD.search(text, found.end())
        owner = found[0].lower() in _OWNERS and follows is not None and follows[0].lower() not in PREPOSITIONS
        return f"{text[: found.start()]}{name.text}{chr(39) + 's' if owner else ''}{text[found.end() :]}"


def states_something(sentence: str) -> bool:
    """Whether a sentence states what evidence could settle: no question, heading, remark, opinion or empty hedge."""
    said = sentence[_REMARK.match(sentence).end() :]  # type: ignore[union-attr]
    if not said.strip() or len(sentence) > _MAX_CHARACTERS or _QUESTION.search(said) or _META.search(said):
        return False
    unquoted = _QUOTED.sub(" ", said)
    plain = [match[0] for match in _WORD.finditer(unquoted)]
    low = [word.lower().replace("’", "'") for word in plain]
    if len(_WORD.findall(said)) < _MIN_WORDS or _has_a_speaker(unquoted) or not _is_clause(said, low):
        return False
    if any(word[0].isdigit() or word[0].isupper() for word in plain[1:]) or _QUOTED.search(said):
        return True
    told = [word for word in low if word not in _VAGUE and stem(word) not in _OPINION_STEMS and not word.endswith("ly")]
    return len(told) >= 2 and _HEDGES.isdisjoint(low)


def _has_a_speaker(text: str) -> bool:
    """Whether a text speaks of its writer; the I of "Elizabeth I" does not, that of "Then I" does."""
    return _SPEAKER.search(_NUMBERED.sub(_without_number, text)) is not None


def _without_number(found: re.Match[str]) -> str:
    return found[0] if found[1].lower() in FUNCTION_WORDS else found[1]


def _is_clause(text: str, low: Sequence[str]) -> bool:
    """Whether a text is more than a heading or a scrap: it ends as sentences do, or has what may be a verb."""
    if _ENDED.search(text):
        return True
    return any(stem(word) in AUXILIARIES or word.endswith("ed") or is_irregular_past(word) for word in low)


def _open_pronoun(text: str) -> re.Match[str] | None:
    """The pronoun that what came before must explain: before any name, and for a thing, the very first word."""
    for at, match in enumerate(_WORD.finditer(text)):
        word = match[0].lower()
        if word in _PEOPLE:
            return match
        if word in _THINGS and at == 0:
            return match
        if at > 0 and match[0][0].isupper():
            return None
    return None
