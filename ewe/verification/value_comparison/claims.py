"""Claims of a sentence: what in it can be checked, said so that it stands alone."""

import re
from dataclasses import dataclass

from ewe.text.english import words_of
from ewe.text.sentences import SentenceSplitter
from ewe.types import Claim, VerificationRequest
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.frame_parser import parse_frames
from ewe.verification.value_comparison.frames import Frame
from ewe.verification.value_comparison.values import Agreement, Name, Term, compare

_LOOKBACK = 6  # Sentences of the answer that are read again for the subject at hand.
_LOOKBACK_CHARACTERS = 4000
_SUBJECT = re.compile(r"\b(?:he|she|it|they)\b", re.IGNORECASE)
_OWNER = re.compile(r"\b(?:his|her|its|their)\b", re.IGNORECASE)
_LEAD = re.compile(r"^(?:and|but|or|who|which|that|where|when|while|,|\s)+\b\s*", re.IGNORECASE)
# Nouns that say nothing: "a remarkable man", "part of a larger story".
_EMPTY_TERMS = words_of(
    """man woman person peopl figur part lif time thing exampl way work kind type sort stor legac rol impact influenc
    contribut member result name number several histor"""
)


@dataclass(frozen=True, slots=True)
class ParsedClaim:
    """A claim with the frame behind it."""

    claim: Claim
    frame: Frame


def extract_claims(request: VerificationRequest, splitter: SentenceSplitter) -> list[ParsedClaim]:
    """The claims of `request.sentence`, in order, with spans in code points of the sentence.

    Pronouns are resolved from the prompt and the text before. Opinions, questions and sentences that state no name,
    number, date or occupation of a known subject give none. Never raises on odd text.
    """
    discourse = read_context(request, splitter)
    frames = parse_frames(request.sentence, discourse)
    return [
        ParsedClaim(Claim(_wording(request.sentence, frame), frame.start, frame.end), frame)
        for frame in frames
        if _is_checkable(frame)
    ]


def read_context(request: VerificationRequest, splitter: SentenceSplitter) -> Discourse:
    """The names and the subject at hand after the prompt and the last sentences of the answer."""
    discourse = Discourse()
    for text in (request.prompt[-_LOOKBACK_CHARACTERS:], request.preceding[-_LOOKBACK_CHARACTERS:]):
        for start, end in splitter.split(text)[-_LOOKBACK:]:
            parse_frames(text[start:end], discourse)
        discourse.focus = discourse.focus or discourse.first
    return discourse


def _is_checkable(frame: Frame) -> bool:
    """Whether the frame states something about a known subject that evidence could settle."""
    if frame.subject is None or not frame.relations:
        return False
    terms = [argument.value for argument in frame.arguments if isinstance(argument.value, Term)]
    if terms and terms[-1].stem not in _EMPTY_TERMS:
        return True
    for argument in frame.arguments:
        if isinstance(argument.value, Term):
            continue
        if not isinstance(argument.value, Name) or compare(argument.value, frame.subject) is not Agreement.EQUAL:
            return True
    return False


def _wording(sentence: str, frame: Frame) -> str:
    """The clause with its subject in words."""
    clause = " ".join(_LEAD.sub("", sentence[frame.start : frame.end]).split())
    head = frame.head or frame.subject
    assert head is not None
    subject = head.text or " ".join(head.words).title()
    known = [name.text for name in (frame.head, frame.subject) if name is not None and name.text]
    if any(name.split()[-1] in clause for name in known):
        return clause
    for pattern, name in ((_SUBJECT, subject), (_OWNER, f"{subject}'s")):
        match = pattern.search(clause)
        if match:
            return clause[: match.start()] + name + clause[match.end() :]
    joint = ", " if frame.relations <= {"be", "occupation"} else " "
    return f"{subject}{joint}{clause}"
