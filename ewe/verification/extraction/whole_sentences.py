"""Claims by rules: what a sentence states, clause by clause, each with its subject named; or why it states nothing."""

from collections.abc import Sequence

from ewe.text.check_result import REPEATS
from ewe.text.language import is_english
from ewe.text.words import words
from ewe.types import Claim, SentenceClaims, VerificationRequest
from ewe.verification.extraction import reasons
from ewe.verification.extraction.clauses import split_clauses
from ewe.verification.extraction.context import sentences_of
from ewe.verification.extraction.markup import Lead, lead_of, plain
from ewe.verification.extraction.pronouns import named
from ewe.verification.extraction.relative_clauses import Clause
from ewe.verification.extraction.repeats import adds_nothing, content_key
from ewe.verification.extraction.statements import why_no_statement
from ewe.verification.extraction.value_lines import value_lines
from ewe.verification.left_out import narrows
from ewe.verification.number_places import moves_a_number
from ewe.verification.predicates import tells_of_another

_FEWEST_WORDS = 4  # Of what states nothing and is said again.
_MOST_NAME_WORDS = 4  # What naming the pronoun of an earlier sentence may add to its words.


class WholeSentences:
    """Takes what sentences state for claims; satisfies `ClaimExtractor`.

    clauses: whether a sentence of several clauses gives a claim for each, or one for all of it.

    Questions, opinions, abstentions, headings, tables, offers, advice to the reader ("you should"), what speaks of its
    writer, what is not English and what only repeats an earlier sentence give none, with the reason; a "you" that means
    anybody does. "He" and its like are replaced by the name they stand for, from the prompt and the text before, where
    the sentence does not name anybody first. Never raises on odd text.
    """

    def __init__(self, clauses: bool = True) -> None:
        self._clauses = clauses

    def extract(self, requests: Sequence[VerificationRequest]) -> list[SentenceClaims]:
        """Per sentence its claims, without a verdict, or why it has none; spans are code points of the sentence."""
        return [self._claims(request) for request in requests]

    def _claims(self, request: VerificationRequest) -> SentenceClaims:
        stated = _stated(request, self._clauses)
        texts = [claim.text for claim in stated]
        is_repeated = _is_repeated(request, texts, self._clauses) if texts else _has_the_same_words(request)
        return SentenceClaims(reason=REPEATS) if is_repeated else stated


def _stated(request: VerificationRequest, with_clauses: bool) -> SentenceClaims:
    """The claims of a sentence, whatever was said before, or why it has none."""
    sentence = request.sentence
    if len(sentence) > reasons.MAX_CHARACTERS:
        return SentenceClaims(reason=reasons.TOO_LONG)
    lead = lead_of(sentence)
    whole = sentence[lead.end :].rstrip()
    if not is_english(whole):
        return SentenceClaims(reason=reasons.NOT_ENGLISH)
    pieces = (value_lines(whole) or split_clauses(whole)) if with_clauses else [Clause(whole, 0, len(whole))]
    pieces_with_reasons = [(piece, why_no_statement(sentence, plain(piece.text).strip())) for piece in pieces]
    claims = [_claim(request, piece, lead) for piece, reason in pieces_with_reasons if not reason]
    return SentenceClaims(claims, "" if claims else pieces_with_reasons[0][1])


def _claim(request: VerificationRequest, piece: Clause, lead: Lead) -> Claim:
    """A clause as a claim: without emphasis, its pronoun named."""
    text = named(request, plain(piece.text).strip(), lead.title)
    return Claim(text[:1].upper() + text[1:], lead.end + piece.start, lead.end + piece.end)


def _adds_nothing(claim: str, earlier: str) -> bool:
    if not adds_nothing(content_key(claim), content_key(earlier)):
        return False
    return not (tells_of_another(claim, earlier) or moves_a_number(claim, earlier) or narrows(claim, earlier))


def _has_the_same_words(request: VerificationRequest) -> bool:
    """Whether an earlier sentence has the same words, whatever their list marks are."""
    own = _own_words(request.sentence)
    return len(own) >= _FEWEST_WORDS and any(_own_words(one) == own for one in sentences_of(request.preceding))


def _own_words(sentence: str) -> list[str]:
    return words(sentence[lead_of(sentence).end :])


def _is_repeated(request: VerificationRequest, claims: Sequence[str], with_clauses: bool) -> bool:
    """Whether every claim was stated before, by a sentence or a clause of one; an earlier question states nothing."""
    claim_keys = [content_key(claim) for claim in claims]
    left = set(range(len(claim_keys)))
    before = request.preceding
    for sentence in reversed(sentences_of(request.preceding)):
        before = before[: before.rfind(sentence)]
        sentence_key = content_key(sentence)[0]
        near = [at for at in left if len(claim_keys[at][0] - sentence_key) <= _MOST_NAME_WORDS]
        if near:
            earlier = _stated(VerificationRequest(request.prompt, before, sentence), with_clauses)
            left -= {at for at in near if any(_adds_nothing(claims[at], claim.text) for claim in earlier)}
    return not left
