"""A memory's history as its page takes it: seven revisions, a contradiction, or hostile texts everywhere."""

from __future__ import annotations

from typing import Any

DAY = 86400.0
BORN = 1.76e9
CONTENT = "The bridge of Orvane was opened in 1923."


def memory(**changes: Any) -> dict[str, Any]:
    values = {
        "id": "wrong", "content": CONTENT, "kind": "fact",
        "source": {"kind": "user", "id": "ann", "reliability": 0.7}, "scope": {"user": "ann", "agent": ""},
        "metadata": {"place": "Orvane"}, "created_at": BORN, "updated_at": BORN + 90 * DAY,
        "confirmed_at": BORN + 2 * DAY, "veracity": 0.1,
        "uncertainty": 0.2, "recall_count": 3, "correct_count": 1, "incorrect_count": 1,
        "contradicts": ["right", "gone"],
    }  # fmt: skip
    return {**values, **changes}


def revisions() -> list[dict[str, Any]]:
    rows: list[tuple[float, str, float, float | None, list[str], str]] = [
        (0, "added", 0.7, None, [], ""),
        (2, "feedback", 0.85, 0.3, ["feedback:user:b%C3%B6b:correct"], ""),
        (5, "contradicted", 0.85, 0.5, ["right"], ""),
        (6, "verified", 0.4, 0.8, ["passage:enc-1"], ""),
        (30, "reviewed", 0.4, 0.8, [], ""),
        (61, "reviewed", 0.14, 0.28, ["passage:enc-1", "passage:register"], ""),
        (90, "a reason of its own", 0.1, 0.2, ["heard it"], "The bridge of Orvane is old."),
    ]
    made, before = [], rows[0][2]
    for number, (days, reason, veracity, uncertainty, evidence, content) in enumerate(rows, 1):
        made.append({
            "memory_id": "wrong", "number": number, "at": BORN + days * DAY, "reason": reason,
            "veracity_before": before, "veracity_after": veracity, "evidence": evidence,
            "content_before": content, "uncertainty": uncertainty,
        })  # fmt: skip
        before = veracity
    return made


def contradictions() -> list[dict[str, Any]]:
    almanac = {"kind": "document", "id": "almanac", "reliability": 0.9}
    content = "The bridge of Orvane was opened in 1932."
    scope = {"user": "", "agent": ""}
    right = memory(id="right", content=content, veracity=0.9, uncertainty=0.21, source=almanac, scope=scope)
    return [{"id": "right", "memory": right}, {"id": "gone", "memory": None}]


def hostile(text: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """The same with every text replaced."""
    attack = memory(
        id=text, content=text, kind=text, source={"kind": text, "id": text, "reliability": 0.5},
        scope={"user": text, "agent": text}, metadata={text: text, "__proto__": text}, contradicts=[text],
    )  # fmt: skip
    changed = [
        {**revision, "reason": text, "evidence": [text, f"feedback:{text}:%:correct", f"passage:{text}"],
         "content_before": text}
        for revision in revisions()
    ]  # fmt: skip
    return attack, changed, [{"id": text, "memory": attack}]
