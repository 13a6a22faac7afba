"""What judges are trained on by `claim_packs`: passages, claims about them, and where they come from.

- written: `written_claims/train.jsonl` and `written/claims*.jsonl`, written by reading, about one to three passages.
- entailment: `written/entailment.jsonl`, passages of all kinds with twelve claims each, written by thinking.
- questions: `written/claims_questions.jsonl`, answers put into sentences (`make_question_statements.py`).
- answers: `written_answers`, long answers sentence by sentence, with false and open twins of their sentences.
- fever, fool me twice, wice: the training parts of those sets (`sources`, `passages`).

The files called written/* lie beside this one; all others under --data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judge_training.pairs import Label, Pair, clean, share_of
from judge_training.passages import fool_me_twice_in_training, prose, wice_in_training
from judge_training.sources import read_fever, read_fool_me_twice, read_rows, read_wice, read_xquad

WRITTEN = Path(__file__).parent / "written"
_WEB_SENTENCES, _WEB_CHARACTERS = 7, 1300
_HELD_OUT = 0.12  # Share of the articles.
_LETTERS = {"s": Label.SUPPORTED, "r": Label.REFUTED, "o": Label.INCONCLUSIVE}

_LABELS = {label.name.lower(): label for label in Label}
REPORTED = frozenset({"Normans", "1973 oil crisis", "Immune system", "Harvard University", "Packet switching"})
"""Articles that benchmarks.verdicts reports on: no claim about them is trained on."""


@dataclass(frozen=True, slots=True)
class Text:
    """A passage: its id, title and text."""

    id: str
    title: str
    text: str

    @property
    def shown(self) -> str:
        """As a judge is shown it: under its title."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and what its passages say of it.

    before: the sentence it follows; home: ids of the passages that bear it.
    """

    text: str
    label: Label
    source: str
    home: tuple[str, ...] = ()
    before: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Pack:
    """Passages in the order they are shown, and claims about them."""

    texts: tuple[Text, ...]
    claims: tuple[Claim, ...]

    @property
    def evidence(self) -> str:
        """The passages as one text."""
        return "\n".join(text.shown for text in self.texts)


@dataclass
class Corpus:
    """Passages by id, their claims, and the pairs of the labelled sets."""

    texts: dict[str, Text] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    answers: list[list[Claim]] = field(default_factory=list)
    pairs: dict[str, list[Pair]] = field(default_factory=dict)

    @classmethod
    def read(cls, data: Path, written: Path = WRITTEN) -> Corpus:
        """All sources; raises FileNotFoundError for one that is missing under `data`."""
        corpus = cls()
        for path in (data / "wikitext_training" / "passages.jsonl", data / "squad2" / "passages.jsonl"):
            corpus._add_texts(read_rows(path))
        xquad = read_xquad(data)
        corpus._add_texts({"id": name, "title": title, "text": one["context"]} for name, title, one in xquad)
        corpus._add_texts(read_rows(data / "written_claims" / "passages.jsonl"))
        for path in sorted(written.glob("passages*.jsonl")):
            corpus._add_texts(read_rows(path))
        corpus._add_texts(_web_texts(data, [row["passage"] for row in read_rows(written / "claims_web.jsonl")]))
        corpus.claims = [_claim(row, "written claims") for row in read_rows(data / "written_claims" / "train.jsonl")]
        for path in sorted(written.glob("claims*.jsonl")):
            corpus.claims += [_claim(row, path.stem) for row in read_rows(path)]
        for number, row in enumerate(read_rows(written / "entailment.jsonl")):
            text = Text(f"entailment/{number}", row["title"], row["text"])
            corpus.texts[text.id] = text
            corpus.claims += [
                Claim(claim, _LETTERS[label], "entailment", (text.id,), "", kind)
                for label, kind, claim in row["claims"]
            ]
        corpus.claims = [claim for claim in corpus.claims if all(name in corpus.texts for name in claim.home)]
        corpus.answers = _answers(data, written)
        corpus.pairs = {
            "fever": list(read_fever(data).train),
            "fool me twice": [pair for fold, pair, _ in read_fool_me_twice(data) if fool_me_twice_in_training(fold)],
            "wice": [pair for pair in read_wice(data) if wice_in_training(pair.group)],
        }
        return corpus

    def _add_texts(self, rows: Iterable[Mapping[str, str]]) -> None:
        new = (Text(row["id"], row["title"].replace("_", " "), row["text"]) for row in rows)
        self.texts |= {text.id: text for text in new if text.title not in REPORTED}


def is_held_out(title: str) -> bool:
    """Whether an article is kept apart, to see how training goes."""
    share: float = share_of(title.replace("_", " "), "reading judge")
    return share < _HELD_OUT


def _claim(row: Mapping[str, str], source: str) -> Claim:
    home = tuple(row["passage"].split("+"))
    return Claim(row["claim"], _LABELS[row["label"]], source, home, row.get("before", ""), row.get("kind", ""))


def _web_texts(data: Path, ids: Iterable[str]) -> list[dict[str, str]]:
    """Stretches of web pages behind WiCE, by ids "wice/ROW/FIRST SENTENCE": their text is not passed on with claims."""
    rows = read_rows(data / "wice" / "claims.jsonl")
    texts = []
    for name in dict.fromkeys(ids):
        _, row, first = name.split("/")
        sentences = [clean(text) for text in rows[int(row)]["evidence"]]
        kept = prose([text for text in sentences[1:] if len(text) > 40 and text.endswith((".", '"'))])
        text = " ".join(kept[int(first) : int(first) + _WEB_SENTENCES])[:_WEB_CHARACTERS]
        texts.append({"id": name, "title": sentences[0].removeprefix("(meta data) TITLE: "), "text": text})
    return texts


def _answers(data: Path, written: Path) -> list[list[Claim]]:
    """Per answer its sentences in order, each followed by its twins, with the sentence before them."""
    twins: dict[tuple[str, int], list[Mapping[str, str]]] = {}
    for path in sorted(written.glob("twins*.jsonl")):
        for row in read_rows(path):
            twins.setdefault((row["passage"], int(row["sentence"])), []).append(row)
    found = []
    for row in read_rows(data / "written_answers" / "train.jsonl"):
        claims, before = [], ""
        for number, sentence in enumerate(row["sentences"]):
            home, text = tuple(sentence["from"]), sentence["text"]
            if home:
                claims.append(Claim(text, Label.SUPPORTED, "answers", home, before, "answer"))
                for twin in twins.get((row["id"], number), ()):
                    claims.append(Claim(twin["claim"], _LABELS[twin["label"]], "answers", home, before, twin["kind"]))
            before = text
        if claims:
            found.append(claims)
    return found
