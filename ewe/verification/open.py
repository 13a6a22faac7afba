"""Verifiers by name.

Owns: which parts stand behind the names, and their defaults. Knows all parts of verification; imports models only for
the judges that need them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ewe.errors import ConfigError
from ewe.protocols import Retriever, Verifier
from ewe.verification.calibration import thresholds_of
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.extraction.protocol import ClaimExtractor
from ewe.verification.judges.load import load_judge
from ewe.verification.value_verifier import ValueVerifier

NAMES = ("builtin", "values", "claims")


def open_verifier(
    name: str,
    retriever: Retriever,
    *,
    extractor: ClaimExtractor | None = None,
    judge: str = "builtin",
    judge_labels: Mapping[str, str] | None = None,
    device: str = "auto",
    evidence_top_k: int | None = None,
    veracity_weighting: bool = False,
    assume_complete: bool = False,
) -> Verifier:
    """The verifier of this name.

    "claims" finds claims (extractor; by rules unless given) and asks a judge (any name that `load_judge` knows;
    judge_labels as there). "values" and "builtin" compare names, numbers and dates; neither extractor nor judge plays a
    part. evidence_top_k: passages per query (None: 6 for a judge, 16 for the comparison). Raises ConfigError for an
    unknown name, JudgeError for a judge that cannot be had.
    """
    if name in ("builtin", "values"):
        return ValueVerifier(retriever, evidence_top_k or 16, veracity_weighting, assume_complete)
    if name != "claims":
        raise ConfigError(f"unknown verifier {name!r}: use {', '.join(map(repr, NAMES))} or pass a Verifier object")
    if extractor is None:
        from ewe.verification.extraction.rules import RuleClaims

        extractor = RuleClaims()
    return ClaimVerifier(
        retriever,
        extractor,
        load_judge(judge, device=device, labels=judge_labels),
        thresholds_of(judge),
        evidence_top_k=evidence_top_k or 6,
        veracity_weighting=veracity_weighting,
        assume_complete=assume_complete,
    )
