"""The verifier "builtin": sentences and passages of the encyclopedia, both read by its grammar, fact against fact.

It knows what the passages say, not what is true. Of other sentences it says nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain

from ewe.config import VerificationConfig
from ewe.evaluation.world.claims import FactClaim, claims_of
from ewe.evaluation.world.people import Fact
from ewe.evaluation.world.wording import catalogue
from ewe.evaluation.world.world_grammar import read_sentence, sentences_of
from ewe.text.words import words
from ewe.types import Evidence, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import Retriever
from ewe.verification.combination import UNSUPPORTED, Decision, JudgedPiece, Thresholds, combine, source_weight

_THRESHOLDS = Thresholds(supported=0.05, refuted=0.05, floor=0.0)
"""A source that counts at all decides alone; where they differ, the stronger side does."""
_SAYS, _SAYS_ANOTHER, _SILENT = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_HAS_TWO = ("work", "prize")  # of everything else people have one
_SHOWN_INSTEAD = 3  # pieces of evidence for a fact that a complete collection does not mention
_CACHED_PASSAGES = 4096


class WorldVerifier:
    """Judges facts by what passages say of the same person and matter.

    A fact is supported by a source that states it, refuted by one that states another value in its place (two others
    of works and prizes), and inconclusive without either. evidence_top_k: passages per query. veracity_weighting:
    whether a source counts by its veracity, or all above 0 count fully. assume_complete: whether the collection tells
    everything, so that a fact that nothing credible in it states is refuted as unsupported; a request's own
    `closed_world` comes first.
    """

    def __init__(
        self,
        retriever: Retriever,
        evidence_top_k: int = 16,
        veracity_weighting: bool = False,
        assume_complete: bool = False,
    ) -> None:
        self._retriever = retriever
        self._top_k = evidence_top_k
        self._weighting = veracity_weighting
        self._assume_complete = assume_complete
        self._read = lru_cache(_CACHED_PASSAGES)(_read)

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One result per request, in order; the retriever is called once for all of them."""
        claims = [claims_of(request) for request in requests]
        passages = iter(self._find(list(chain(*claims))))
        complete = [self._assume_complete if one.closed_world is None else one.closed_world for one in requests]
        return [
            _result([(claim, self._judge(claim, next(passages), is_complete)) for claim in group])
            for group, is_complete in zip(claims, complete, strict=True)
        ]

    def _find(self, claims: Sequence[FactClaim]) -> list[list[Passage]]:
        """Per claim its passages, best first, without repetitions; passages of veracity 0 are left out."""
        queries = [list(_queries(claim)) for claim in claims]
        unique = list(dict.fromkeys(chain(*queries)))
        hits = dict(zip(unique, self._retriever.retrieve(unique, self._top_k), strict=True)) if unique else {}
        results = []
        for group in queries:
            passages = {scored.passage.id: scored.passage for query in group for scored in hits[query]}
            results.append([passage for passage in passages.values() if passage.veracity > 0])
        return results

    def _judge(self, claim: FactClaim, passages: Sequence[Passage], is_complete: bool) -> Decision:
        """Refuted if one of its facts is, supported if all are; is_complete: whether the passages tell everything."""
        decisions = [self._decide(fact, passages, is_complete) for fact in claim.facts]
        verdict = Verdict.of_all({decision.verdict for decision in decisions})
        if verdict is Verdict.INCONCLUSIVE:
            return Decision(verdict)
        deciding = [decision for decision in decisions if decision.verdict is verdict]
        score = (max if verdict is Verdict.REFUTED else min)(decision.score for decision in deciding)
        evidence = dict.fromkeys(piece for decision in deciding for piece in decision.evidence)
        reason = UNSUPPORTED if all(decision.reason for decision in deciding) else ""
        return Decision(verdict, score, tuple(evidence), min(decision.support for decision in decisions), reason)

    def _decide(self, fact: Fact, passages: Sequence[Passage], is_complete: bool) -> Decision:
        """The verdict on one fact, with the evidence on that side."""
        pieces = _weigh(fact, [*self._statements(fact, passages)])
        decision = combine(pieces, _THRESHOLDS)
        believed = [piece for piece in pieces if piece.weight > 0]
        is_unstated = all(piece.probabilities != _SAYS for piece in believed)
        if decision.verdict is Verdict.INCONCLUSIVE and is_complete and is_unstated:
            instead = sorted(dict.fromkeys(believed), key=lambda piece: (-piece.weight, piece.passage.id))
            shown = [Evidence(p.passage, Verdict.REFUTED, p.weight, p.excerpt) for p in instead[:_SHOWN_INSTEAD]]
            return Decision(Verdict.REFUTED, 1.0, tuple(shown), reason=UNSUPPORTED)
        evidence = tuple(piece for piece in decision.evidence if piece.stance is decision.verdict)
        return replace(decision, evidence=evidence)

    def _statements(self, fact: Fact, passages: Sequence[Passage]) -> Iterator[tuple[JudgedPiece, Fact]]:
        """What the passages say of the fact's person in its relation, with where they say it."""
        for passage in passages:
            weight = source_weight(passage.veracity) if self._weighting else 1.0
            for excerpt, facts in self._read(passage):
                for stated in facts:
                    if (stated.subject, stated.relation) == (fact.subject, fact.relation):
                        yield JudgedPiece(passage, excerpt, weight, _SILENT), stated


def make_world_verifier(
    retriever: Retriever, settings: VerificationConfig, veracity_weighting: bool, assume_complete: bool
) -> WorldVerifier:
    """The verifier "builtin"; of the settings only evidence_top_k plays a part."""
    return WorldVerifier(retriever, settings.evidence_top_k or 16, veracity_weighting, assume_complete)


def _read(passage: Passage) -> tuple[tuple[str, tuple[Fact, ...]], ...]:
    """The sentences of a passage with what they state; a pronoun in the first means the person of the title."""
    current, read = passage.title, []
    for _, sentence in sentences_of(passage.text):
        reading = read_sentence(sentence, (passage.title,), current)
        current = reading.subject
        read.append((sentence, reading.facts))
    return tuple(read)


def _weigh(fact: Fact, statements: Sequence[tuple[JudgedPiece, Fact]]) -> list[JudgedPiece]:
    """The pieces with what they say of the fact: a source has to give as many other values as there can be."""
    others: dict[str, set[str]] = {}
    for piece, other in statements:
        if other.about == fact.about and other.value != fact.value:
            others.setdefault(piece.source, set()).add(other.value)
    needed = 2 if fact.relation in _HAS_TWO else 1
    weighed = []
    for piece, other in statements:
        is_against = other.about == fact.about and len(others.get(piece.source, ())) >= needed
        stance = _SAYS if other == fact else _SAYS_ANOTHER if is_against else _SILENT
        weighed.append(replace(piece, probabilities=stance))
    return weighed


def _queries(claim: FactClaim) -> Iterator[str]:
    """What finds evidence for a claim, against it, and in other words."""
    subject = claim.facts[0].subject
    yield claim.claim.text
    yield f"{subject} {_words_of(claim.facts[0].relation)}"
    yield subject


@cache
def _words_of(relation: str) -> str:
    """The words in which the encyclopedia speaks of a relation."""
    literals = " ".join(
        literal for phrasing in catalogue() if relation in phrasing.slots for literal, _ in phrasing.parts
    )
    return " ".join(dict.fromkeys(words(literals)))


def _result(judged: Sequence[tuple[FactClaim, Decision]]) -> VerificationResult:
    """The claims of one sentence with their verdicts, and the evidence of each."""
    evidence = dict.fromkeys(
        replace(piece, claim=claim.claim.text) for claim, decision in judged for piece in decision.evidence
    )
    return VerificationResult(tuple(decision.of(claim.claim) for claim, decision in judged), tuple(evidence))
