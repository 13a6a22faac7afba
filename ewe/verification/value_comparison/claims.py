"""Claims of a sentence: what in it can be checked, said so that it stands alone."""

import re
from dataclasses import dataclass

from ewe.text.english import words_of
from ewe.text.sentences import SentenceSplitter
from ewe.types import Claim, VerificationRequest
from ewe.verification.value_comparison.clauses import Clause
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.statements import read_statements
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
    """A claim with the statement behind it."""

    claim: Claim
    statement: Clause


def extract_claims(request: VerificationRequest, splitter: SentenceSplitter) -> list[ParsedClaim]:
    """The claims of `request.sentence`, in order, with spans in code points of the sentence.

    Pronouns are resolved from the prompt and the text before. Opinions, questions and sentences that state no name,
    number, date or occupation of a known subject give none. Never raises on odd text.
    """
    discourse = read_context(request, splitter)
    statements = read_statements(request.sentence, discourse)
    return [
        ParsedClaim(Claim(_wording(request.sentence, statement), statement.start, statement.end), statement)
        for statement in statements
        if _is_checkable(statement)
    ]


def read_context(request: VerificationRequest, splitter: SentenceSplitter) -> Discourse:
    """The names and the subject at hand after the prompt and the last sentences of the answer."""
    discourse = Discourse()
    for text in (request.prompt[-_LOOKBACK_CHARACTERS:], request.preceding[-_LOOKBACK_CHARACTERS:]):
        for start, end in splitter.split(text)[-_LOOKBACK:]:
            read_statements(text[start:end], discourse)
        discourse.focus = discourse.focus or discourse.first
    return discourse


def _is_checkable(statement: Clause) -> bool:
    """Whether the statement states something about a known subject that evidence could settle."""
    if statement.subject is None or not statement.relations:
        return False
    terms = [argument.value for argument in statement.arguments if isinstance(argument.value, Term)]
    if terms and terms[-1].stem not in _EMPTY_TERMS:
        return True
    for argument in statement.arguments:
        if isinstance(argument.value, Term):
            continue
        if not isinstance(argument.value, Name) or compare(argument.value, statement.subject) is not Agreement.EQUAL:
            return True
    return False


def _wording(sentence: str, statement: Clause) -> str:
    """The clause with its subject in words."""
    clause = " ".join(_LEAD.sub("", sentence[statement.start : statement.end]).split())
    assert statement.subject is not None
    subject = statement.subject.text or " ".join(statement.subject.words).title()
    if subject.split()[-1] in clause:
        return clause
    for pattern, name in ((_SUBJECT, subject), (_OWNER, f"{subject}'s")):
        match = pattern.search(clause)
        if match:
            return clause[: match.start()] + name + clause[match.end() :]
    joint = ", " if statement.relations <= {"be", "occupation"} else " "
    return f"{subject}{joint}{clause}"
