"""The sentences that `benchmarks.verdicts` has checked, what they are checked against, and what should come out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from benchmarks.verdicts_changes import CHANGES, GROUPS, changed
from benchmarks.verdicts_edits import EDITS, edited
from benchmarks.verdicts_texts import (
    Half,
    Label,
    Told,
    fever_half,
    read_articles,
    read_documents,
    read_evidence,
    read_fever,
    read_questions,
    share_of,
)
from ewe.config.setting_names import WIKIPEDIA_SAMPLE
from ewe.retrieval.open_retriever import open_source
from ewe.types import Passage, Verdict, VerificationRequest

_T = TypeVar("_T")

_VERDICTS = {Label.SUPPORTED: Verdict.SUPPORTED, Label.REFUTED: Verdict.REFUTED}
_EXPECTED = {"true": Verdict.SUPPORTED, "false": Verdict.REFUTED, "unsaid": Verdict.INCONCLUSIVE}
_WRITTEN = Path(__file__).parent / "verdicts_written.jsonl"
_PER_KIND = 100
_REPORTED = 150  # Claims of FEVER per side in the half for reporting.
_SUMMARY_WORDS = 900  # of the document that a summary tells of
_SUMMARY_LINES = 4
_PREDICATE = r"(?:was|were|is|are) (?:an?|the|one|another|\w+['’]s|\w+ed|used|known)|\w+ed|led|won|gave|took"
_ASKED = re.compile(rf"(?:Who|What|Which (?:\w+ ){{1,2}}?)(?= ?(?:{_PREDICATE})\b)")
_LEFT_OPEN = re.compile(r"\b(?:called|named|this|these)\b|\b(?:of|by|with|as|to|for|in|on|from|at|about)\Z")


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence to check; expected: what its verdict should be; group: the summary it belongs to, if to any."""

    kind: str
    request: VerificationRequest
    expected: Verdict
    group: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """The cases of one part of the benchmark and what they are checked against."""

    passages: Sequence[Passage]
    cases: Sequence[Case]


def running(data: Path, half: Half, limit: int) -> Part:
    """True sentences of articles, and the same with one number, name or negation changed."""
    passages, told = read_articles(data, half)
    cases = []
    for one in spread(told, limit):
        cases.append(Case("true", _request(one, one.sentence), Verdict.SUPPORTED))
        random = Random(one.sentence)
        for group, kinds in GROUPS.items():
            texts = [changed(kind, one.sentence, one.source, random) for kind in random.sample(kinds, len(kinds))]
            text = next((text for text in texts if text is not None), None)
            if text is not None:
                cases.append(Case(group, _request(one, text), Verdict.REFUTED))
    return Part(passages, cases)


def contrast(data: Path, half: Half, limit: int) -> Part:
    """Every kind of change by itself, at most 100 sentences each, of articles and of FEVER's evidence."""
    rules = {kind: partial(_changed, kind) for kind in CHANGES}
    return _by_kind(data, half, limit, rules, Verdict.REFUTED)


def paraphrase(data: Path, half: Half, limit: int) -> Part:
    """The same for edits that leave a sentence true."""
    rules = {kind: partial(_edited, kind) for kind in EDITS}
    return _by_kind(data, half, limit, rules, Verdict.SUPPORTED)


def _changed(kind: str, one: Told) -> str | None:
    return changed(kind, one.sentence, one.source, Random(kind + one.sentence))


def _edited(kind: str, one: Told) -> str | None:
    return edited(kind, one.sentence)


def _by_kind(
    data: Path, half: Half, limit: int, rules: Mapping[str, Callable[[Told], str | None]], expected: Verdict
) -> Part:
    passages, told = read_articles(data, half)
    evidence, apart = read_evidence(data, half)
    cases = []
    for kind, rule in rules.items():
        made = [(one, text) for one in (*told, *apart) if (text := rule(one)) is not None]
        chosen = sorted(made, key=lambda pair: share_of(pair[0].sentence, kind))[: min(limit, _PER_KIND)]
        cases += [Case(kind, _request(one, text), expected) for one, text in chosen]
    return Part([*passages, *evidence], cases)


def fever(data: Path, half: Half, limit: int) -> Part:
    """FEVER's claims over the texts of all of its evidence; fresh ones are those after the first 300 for reporting."""
    sets = read_fever(data)
    texts = dict.fromkeys(pair.evidence for pair in (*sets.train, *sets.test))
    passages = [Passage(str(number), text) for number, text in enumerate(texts)]
    pairs = list({pair.claim: pair for pair in fever_half(sets.test, half)}.values())
    sides = [[p for p in pairs if p.label is label] for label in (Label.SUPPORTED, Label.REFUTED)]
    first = _REPORTED if half == "fresh" else 0
    ranked = (sorted(side, key=lambda pair: share_of(pair.claim)) for side in sides)
    chosen = [pair for side in ranked for pair in side[first : first + limit // 2]]
    names = {Label.SUPPORTED: "true", Label.REFUTED: "false"}
    return Part(
        passages,
        [Case(names[pair.label], VerificationRequest("", "", pair.claim), _VERDICTS[pair.label]) for pair in chosen],
    )


def written(data: Path, half: Half, limit: int) -> Part:
    """Sentences in words of their own about paragraphs of `wikipedia-sample`: true, false, and not told there.

    They were written for this benchmark; every other paragraph is for tuning, and no half is fresh.
    """
    passages = [passage for _, passage in open_source(WIKIPEDIA_SAMPLE).scan()]
    rows = [json.loads(line) for line in _WRITTEN.read_text(encoding="utf-8").splitlines()]
    ids = list(dict.fromkeys(row["passage"] for row in rows))
    kept = {"tune": ids[::2], "report": ids[1::2], "fresh": []}[half]
    titles = {passage.id: passage.title for passage in passages}
    cases = [
        Case(
            row["label"],
            VerificationRequest(f"Tell me about {titles[row['passage']]}.", "", row["sentence"]),
            _EXPECTED[row["label"]],
        )
        for row in rows
        if row["passage"] in kept
    ]
    return Part(passages, spread(cases, limit))


def summary(data: Path, half: Half, limit: int) -> Part:
    """Summaries of documents of about 900 words: people's questions, put as statements with their answers.

    Every summary comes as it is, and once per statement with that one given the answer to another question.
    """
    documents = read_documents(data, half, _SUMMARY_WORDS)
    statements = _statements(data)
    cases: list[Case] = []
    for number, document in enumerate(documents):
        told = [pair for passage in document for pair in statements.get(passage.id, ())]
        random = Random(number)
        random.shuffle(told)
        for start in range(0, len(told) - _SUMMARY_LINES + 1, _SUMMARY_LINES):
            cases += _summaries(f"{number}/{start}", told[start : start + _SUMMARY_LINES], told, random)
    names = list(dict.fromkeys(case.group.split()[0] for case in cases))
    kept = set(spread(names, limit // (2 * _SUMMARY_LINES)))
    passages = [passage for document in documents for passage in document]
    return Part(passages, [case for case in cases if case.group.split()[0] in kept])


def _summaries(
    name: str, lines: Sequence[tuple[str, str]], told: Sequence[tuple[str, str]], random: Random
) -> Iterator[Case]:
    """The cases of a good summary, and of a bad one per line for which there is another answer."""
    true = [_case("faithful", answer, rest, f"{name} good") for answer, rest in lines]
    yield from true
    for number, (answer, rest) in enumerate(lines):
        others = [other for other, _ in told if _is_other(other, answer, rest)]
        if others:
            group = f"{name} bad {number}"
            yield _case("unfaithful", random.choice(others), rest, group)
            yield from (replace(case, group=group) for case in (*true[:number], *true[number + 1 :]))


def _case(kind: str, answer: str, rest: str, group: str) -> Case:
    request = VerificationRequest("", "", f"{answer[0].upper()}{answer[1:]} {rest}.")
    return Case(kind, request, Verdict.SUPPORTED if kind == "faithful" else Verdict.REFUTED, group)


def _is_other(other: str, answer: str, rest: str) -> bool:
    words = {word.lower() for word in re.findall(r"\w{3,}", f"{answer} {rest}")}
    return other[0].isupper() == answer[0].isupper() and not words & {w.lower() for w in re.findall(r"\w{3,}", other)}


def _statements(data: Path) -> dict[str, list[tuple[str, str]]]:
    """Per passage, (answer, rest) of questions whose first words are the subject: "Who led X?" gives "Y led X".

    Questions after an object ("What was X called?") would give no sentence.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for passage, question, answer in read_questions(data):
        match = _ASKED.match(question)
        if match is None:
            continue
        rest = question[match.end() :].strip().rstrip("?").strip()
        if len(rest.split()) >= 4 and not _LEFT_OPEN.search(rest):
            found.setdefault(passage, []).append((answer.strip(" ."), rest))
    return found


def spread(items: Sequence[_T], limit: int) -> list[_T]:
    """At most `limit` of the items, evenly spread over them."""
    size = min(limit, len(items))
    return [items[number * len(items) // size] for number in range(size)]


def _request(one: Told, text: str) -> VerificationRequest:
    return VerificationRequest("", one.preceding, text)
