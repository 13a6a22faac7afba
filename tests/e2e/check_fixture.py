"""A checked text written by hand: every verdict, a dispute, hostile passages; and a verifier that goes by words."""

from __future__ import annotations

from collections.abc import Sequence

from show_fixture import HOSTILE

from ewe.errors import EWEError
from ewe.text.check_result import CheckedSentence, CheckedText
from ewe.types import Claim, Evidence, Passage, Sentence, Verdict, VerificationRequest, VerificationResult

ALMANAC = Passage("p1", "Mirela Hask is a hydrologist, born in Orvane on 3 May 1931.", "Mirela Hask", "Almanac")
REGISTER = Passage(
    "p2", "Winners of the Larch Prize: 1961 Ivo Sandt, 1963 Mirela Hask.", "Larch Prize", "Prize register",
    "https://example.org/larch", "1964-01-01", 0.8,
)  # fmt: skip
RUMOUR = Passage("p3", "Some say that Mirela Hask was born in Lund.", "Rumours", "Pamphlet", veracity=0.2)
ATTACK = Passage("p4", HOSTILE, HOSTILE, HOSTILE, "javascript:alert(1)")
SENTENCES = (
    "Mirela Hask was born in Orvane in 1931.",
    "She won the Larch Prize in 1961.",
    "Edda Roon was her pupil – “a fine one” 🌊.",
    "What a life!",
    "She never wrote a book.",
)


def checked_text() -> CheckedText:
    """Five sentences: one supported (with a dispute), refuted, inconclusive, without claims, and failed."""
    texts = iter(SENTENCES)
    birth = Claim("Mirela Hask was born in Orvane", 0, 30, Verdict.SUPPORTED, 0.88, ("p1", "p3"))
    year = Claim("Mirela Hask was born in 1931", 0, 39, Verdict.SUPPORTED, 0.95, ("p1",))
    prize = Claim("Mirela Hask won the Larch Prize in 1961", 0, 32, Verdict.REFUTED, 0.91, ("p2", "p4"))
    pupil = Claim("Edda Roon was Mirela Hask's pupil", 0, 23, Verdict.INCONCLUSIVE)
    found = [
        ((birth, year), "", (
            Evidence(ALMANAC, Verdict.SUPPORTED, 0.9, ALMANAC.text, birth.text),
            Evidence(RUMOUR, Verdict.REFUTED, 0.7, RUMOUR.text, birth.text),
            Evidence(ALMANAC, Verdict.SUPPORTED, 0.95, ALMANAC.text, year.text),
        )),
        ((prize,), "", (
            Evidence(REGISTER, Verdict.REFUTED, 0.93, "1961 Ivo Sandt, 1963 Mirela Hask", prize.text),
            Evidence(ATTACK, Verdict.REFUTED, 0.6, HOSTILE, prize.text),
        )),
        ((pupil,), "", ()),
        ((), "no checkable claim", ()),
        ((), "the endpoint is down", ()),
    ]  # fmt: skip
    text, sentences = "", []
    for claims, reason, evidence in found:
        start, sentence = len(text), next(texts)
        text += sentence + "  "
        result = VerificationResult(claims, evidence)
        sentences.append(
            CheckedSentence(
                Sentence(sentence, start, start + len(sentence), result.verdict, result.score, claims, reason=reason),
                evidence,
            )
        )
    return CheckedText(text.rstrip(), tuple(sentences), "Tell me about Mirela Hask.", "the endpoint is down")


class WordVerifier:
    """Refutes sentences with "wrong", leaves open those with "perhaps", fails on "boom", supports all others."""

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [self._one(request.sentence) for request in requests]

    def _one(self, sentence: str) -> VerificationResult:
        if "boom" in sentence:
            raise EWEError("the endpoint is down")
        verdict = Verdict.REFUTED if "wrong" in sentence else Verdict.SUPPORTED
        if "perhaps" in sentence:
            return VerificationResult((Claim(sentence, verdict=Verdict.INCONCLUSIVE),))
        claim = Claim(sentence, 0, len(sentence), verdict, 0.9, ("p1",))
        return VerificationResult((claim,), (Evidence(ALMANAC, verdict, 0.9, ALMANAC.text, sentence),))
