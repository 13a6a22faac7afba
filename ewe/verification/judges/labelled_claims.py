"""Claims whose labels are known, with their passages: what the judge `writer` is measured on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.types import Passage
from ewe.verification.excerpts import ExcerptSelector
from ewe.verification.judges.protocol import COLUMNS, Pair
from ewe.verification.judges.writer_calibration import WINDOW

_LABELS = {verdict.value: column for column, verdict in enumerate(COLUMNS)}
_EXAMPLE = '{"claim": "...", "label": "supported", "passages": [{"title": "...", "text": "..."}]}'


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim and what its passages say of it.

    label: the column of a judge's answer. group: what it shares with others about the same article. before: the
    sentence that it follows.
    """

    text: str
    label: int
    passages: tuple[Passage, ...]
    before: str = ""

    @property
    def group(self) -> str:
        """The article, or else the passage, that it is about."""
        return self.passages[0].title or self.passages[0].text

    @property
    def pair(self) -> Pair:
        """What the judge is shown, cut as it is while a model writes."""
        shown = ExcerptSelector().select(self.text, self.passages, WINDOW.max_characters)
        return WINDOW.evidence([excerpt.shown for excerpt in shown], self.before), self.text


def read_claims(path: Path | None = None) -> list[LabelledClaim]:
    """The claims of a JSONL file, or those of the package.

    Raises InvalidRequestError that names the line which is none, or the label that has fewer than 20 claims.
    """
    file = path or Path(str(files("ewe.verification.judges"))) / "writer_claims" / "claims.jsonl"
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    claims = [_claim(line, f"{file}, line {number}") for number, line in lines if line.strip()]
    for name, label in _LABELS.items():
        count = sum(claim.label == label for claim in claims)
        if count < _LEAST:
            raise InvalidRequestError(f"{file} has {count} claims that are {name}: at least {_LEAST} are needed")
    return claims


_LEAST = 20  # Of each label: of fewer, shares say nothing.


def _claim(line: str, place: str) -> LabelledClaim:
    try:
        row: Mapping[str, Any] = json.loads(line)
        passages = tuple(
            Passage(str(number), str(source["text"]), str(source.get("title", "")))
            for number, source in enumerate(row["passages"])
        )
        label, text = _LABELS[row["label"]], str(row["claim"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequestError(f"{place}: this is no labelled claim ({error!r}); one is {_EXAMPLE}") from error
    if not text.strip() or not any(passage.text.strip() for passage in passages):
        raise InvalidRequestError(f"{place}: the claim or its passages are empty")
    return LabelledClaim(text, label, passages, str(row.get("before", "")))
