"""Writes prompts and passages for `ewe eval factuality` out of two public sets: FEVER's pages and MuSiQue's questions.

Half of the prompts ask about the subject of a FEVER evidence text ("Tell me about X."), half are MuSiQue's questions.
The passages are all texts of both sets, so that retrieval has to find the right ones. FEVER's tokens are written as
text again. Another --seed draws other prompts, to tune with; the data sets are not part of this project.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

_SUBJECT = re.compile(r"^((?:[A-Z][\w.']+ ){1,4})(?:\( [^)]* \) )?(?:is|was|are|were) (?:an?|the) ")
_MIN_CHARACTERS = 120
_TOKENS = (
    ("-LRB-", "("),
    ("-RRB-", ")"),
    ("-LSB-", "["),
    ("-RSB-", "]"),
    ("`` ", '"'),
    (" ''", '"'),
    (" --", " –"),
)
_BEFORE_MARK = re.compile(r" ([,.;:?!%)\]]|'s\b|n't\b)")
_AFTER_BRACKET = re.compile(r"([(\[]) ")


def as_text(tokens: str) -> str:
    """A text of FEVER's, whose tokens stand apart, with the spaces of running text."""
    for token, mark in _TOKENS:
        tokens = tokens.replace(token, mark)
    return _AFTER_BRACKET.sub(r"\1", _BEFORE_MARK.sub(r"\1", tokens)).strip()


def fever_pages(path: Path) -> dict[str, str]:
    """Every evidence text once, with its subject where its first sentence names it (else "")."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {as_text(text): _subject(text) for text in dict.fromkeys(row["evidence"] for row in rows)}


def _subject(text: str) -> str:
    found = _SUBJECT.match(text)
    return as_text(found[1]) if found and len(text) >= _MIN_CHARACTERS else ""


def musique_passages(rows: list[dict]) -> Iterator[str]:
    """Every text that stands beside a question, once."""
    yield from dict.fromkeys(context["text"] for row in rows for context in row["ctxs"])


def main() -> None:
    """Writes prompts.jsonl and passages.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fever", type=Path, required=True, help="claims.jsonl with `evidence`")
    parser.add_argument("--musique", type=Path, required=True, help="musique_s.json of CacheBlend's inputs")
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    parser.add_argument("--prompts", type=int, default=100, help="half of them from each set")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of prompts")
    parser.add_argument("--without", type=Path, metavar="FILE", help="a prompts.jsonl whose prompts are left out")
    arguments = parser.parse_args()
    pages = fever_pages(arguments.fever)
    questions = json.loads(arguments.musique.read_text(encoding="utf-8"))
    lines = arguments.without.read_text(encoding="utf-8").splitlines() if arguments.without else []
    used = {json.loads(line)["prompt"] for line in lines}
    draw, prompts = random.Random(arguments.seed), []
    names = sorted({subject for subject in pages.values() if subject})
    for asked in ([f"Tell me about {name.rstrip('.')}." for name in names], [row["question"] for row in questions]):
        prompts += draw.sample([text for text in asked if text not in used], arguments.prompts // 2)
    passages = [{"id": f"fever-{n}", "title": title, "text": text} for n, (text, title) in enumerate(pages.items())]
    passages += [{"id": f"musique-{n}", "text": text} for n, text in enumerate(musique_passages(questions))]
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows_of_prompts = [{"id": str(n), "prompt": text} for n, text in enumerate(prompts)]
    for name, rows in (("prompts", rows_of_prompts), ("passages", passages)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (arguments.output / f"{name}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
