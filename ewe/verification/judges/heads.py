"""What the outputs of a classification model say about a claim: label names as verdicts, logits as probabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewe.errors import JudgeError
from ewe.verification.judges.protocol import INCONCLUSIVE, REFUTED, SUPPORTED

# Models for natural-language inference and for fact checking name the same three things differently. What only says
# "not supported" may be refuted or open: such a label is no evidence against a claim.
_SPELLINGS = {
    SUPPORTED: """supported supports support entailment entails entailed entail attributable consistent factual
        grounded""",
    REFUTED: "refuted refutes refute contradiction contradicts contradicted contradictory contradict",
    INCONCLUSIVE: """inconclusive neutral notenoughinfo notenoughinformation nei unverifiable notsupported unsupported
        notentailment notentailed nonentailment notattributable inconsistent notconsistent notfactual nonfactual
        notgrounded ungrounded hallucination hallucinated""",
}
_COLUMN_OF_NAME = {name: column for column, names in _SPELLINGS.items() for name in names.split()}
_GIVEN = {"supported": SUPPORTED, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}
_NO_LETTER = re.compile(r"[^a-z]")


@dataclass(frozen=True, slots=True)
class Head:
    """How logits become probabilities of verdicts.

    columns: per logit, the verdict's column. single: the one logit is the log-odds of "supported". temperature divides
    the logits (Guo et al. 2017).
    """

    columns: tuple[int, ...]
    temperature: float = 1.0

    @property
    def single(self) -> bool:
        """Whether one logit stands for supported against everything else."""
        return len(self.columns) == 1

    def probabilities(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """float64 [pairs, 3] from logits [pairs, labels]; labels of one verdict add up, absent verdicts get 0."""
        scaled = np.asarray(logits, dtype=np.float64) / self.temperature
        if self.single:
            scaled = np.concatenate([scaled, np.zeros_like(scaled)], axis=1)
        columns = (SUPPORTED, INCONCLUSIVE) if self.single else self.columns
        shares = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        result = np.zeros((len(shares), 3))
        for index, column in enumerate(columns):
            result[:, column] += shares[:, index]
        return result


def read_head(
    names: Mapping[int, str], model: str, labels: Mapping[str, str] | None = None, temperature: float = 1.0
) -> Head:
    """The head of a model whose outputs have these names ({index: label}); `labels` maps names to verdicts.

    A label that only denies support ("not_entailment", "hallucinated") counts as inconclusive: it does not tell what
    is refuted from what is open. Raises JudgeError if a label's meaning is not known, if none means supported, or if
    `labels` names labels or verdicts that there are not.
    """
    if not temperature > 0:
        raise JudgeError(f"{model}: the temperature must be positive, got {temperature}")
    given = _given(names, model, labels or {})
    columns = [given.get(name, _COLUMN_OF_NAME.get(_normal(name))) for _, name in sorted(names.items())]
    unknown = [name for (_, name), column in zip(sorted(names.items()), columns, strict=True) if column is None]
    if unknown:
        raise JudgeError(
            f"{model} calls its outputs {', '.join(names[i] for i in sorted(names))}: say what "
            f"{', '.join(unknown)} {'means' if len(unknown) == 1 else 'mean'} with a mapping to supported, refuted or "
            f"inconclusive, such as labels={{{unknown[0]!r}: 'supported'}}"
        )
    if SUPPORTED not in columns:
        raise JudgeError(f"{model} has no output for supported claims ({', '.join(names.values())}), so it is no judge")
    if len(columns) > 1 and len(set(columns)) == 1:
        raise JudgeError(f"{model}: all of its outputs are taken for supported; one must stand for something else")
    return Head(tuple(column for column in columns if column is not None), temperature)


def _given(names: Mapping[int, str], model: str, labels: Mapping[str, str]) -> dict[str, int]:
    """The mapping that the caller gave, as columns."""
    strange = [name for name in labels if name not in names.values()]
    if strange:
        raise JudgeError(f"{model} has no output {', '.join(strange)}; it has {', '.join(names.values())}")
    wrong = sorted({verdict for verdict in labels.values() if verdict not in _GIVEN})
    if wrong:
        raise JudgeError(f"{model}: labels map to supported, refuted or inconclusive, not to {', '.join(wrong)}")
    return {name: _GIVEN[verdict] for name, verdict in labels.items()}


def _normal(name: str) -> str:
    return _NO_LETTER.sub("", name.lower())
