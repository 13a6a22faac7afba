"""Draws the claims that `ewe judge calibrate` measures on: 160 of each label, out of scripts/judge_training/written.

Run by hand: `python scripts/sample_judge_claims.py`. Only claims about paragraphs of WikiText's validation split are
drawn (--data has them), of articles that no benchmark reports on. Kinds take turns; of each kind comes the claim whose
passages, and then whose article, have been drawn least.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from judge_training.claim_corpus import WRITTEN  # noqa: E402
from judge_training.sources import read_rows  # noqa: E402

TARGET = ROOT / "ewe" / "verification" / "judges" / "writer_claims" / "claims.jsonl"
_EACH = 160
_LONGEST = 1200  # Characters of passages: a claim takes a small model on a CPU about a second.
Row = dict[str, Any]


def reported_articles(data: Path) -> set[str]:
    """The titles of articles that benchmarks report on."""
    files = (data / "wikitext" / "passages.jsonl", data / "written_claims" / "report.jsonl")
    titles = {row["title"] for file in files for row in read_rows(file)}
    answers = read_rows(ROOT / "benchmarks" / "verdicts_answers.jsonl")
    return titles | {row["title"] for row in answers if row["half"] == "report"}


def candidates(data: Path) -> list[Row]:
    """All claims that may be drawn, as they will be written, in an order that says nothing."""
    reported = reported_articles(data)
    passages = {row["id"]: row for row in read_rows(data / "wikitext_training" / "passages.jsonl")}
    found = []
    for row in [*read_rows(WRITTEN / "claims_wikipedia.jsonl"), *read_rows(WRITTEN / "claims_joined.jsonl")]:
        own = [passages[name] for name in row["passage"].split("+") if name in passages]
        shown = [{"title": passage["title"], "text": passage["text"]} for passage in own]
        is_whole = len(own) == row["passage"].count("+") + 1 and not {one["title"] for one in own} & reported
        if is_whole and not row.get("doubtful") and sum(len(one["text"]) for one in shown) <= _LONGEST:
            before = {"before": row["before"]} if row.get("before") else {}
            claim = {"claim": row["claim"], "label": row["label"], "kind": row["kind"], **before}
            found.append({**claim, "passages": shown})
    return sorted(found, key=lambda row: sha256(row["claim"].encode()).digest())


def drawn(rows: list[Row]) -> Iterator[Row]:
    """160 of each label."""
    articles: Counter[str] = Counter()
    texts: Counter[str] = Counter()

    def uses(row: Mapping[str, Any]) -> tuple[int, int]:
        return sum(texts[one["text"]] for one in row["passages"]), articles[row["passages"][0]["title"]]

    for label in ("supported", "refuted", "inconclusive"):
        kinds = sorted({row["kind"] for row in rows if row["label"] == label})
        left = {kind: [row for row in rows if (row["label"], row["kind"]) == (label, kind)] for kind in kinds}
        for number in range(_EACH):
            kind = [kind for kind in kinds if left[kind]][number % sum(map(bool, left.values()))]
            row = min(left[kind], key=uses)
            left[kind].remove(row)
            texts.update(one["text"] for one in row["passages"])
            articles[row["passages"][0]["title"]] += 1
            yield row


def main() -> None:
    """Draws and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    rows = list(drawn(candidates(parser.parse_args().data)))
    TARGET.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    titles = {one["title"] for row in rows for one in row["passages"]}
    print(f"{len(rows)} claims about {len(titles)} articles: {TARGET}")


if __name__ == "__main__":
    main()
