"""Long answers on 48 articles of Wikipedia: how many of their sentences the articles support, by system.

"Tell me about ..." for every article of `wikipedia-sample`, put to a chat model that writes alone (plain), with the four
passages that retrieval finds in its prompt (prompt), with them as memory units that follow what it writes (units), and
with its sentences checked and rewritten as well (ewe); ewe_complete also takes back what nothing supports
(feedback.closed_world) and leaves out what stays so. Sentences are checked by the built-in judge while they are
written, and graded by the judge "base", which had no part in the writing, over the whole datastore. Unfinished last
sentences are left out, and a sentence that is said twice counts once.

Tune on --half tune; figures are reported on --half report. Intervals: 95%, bootstrap over articles.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import parse_arguments, report
from ewe import LLM, SamplingParams
from ewe.config import Config, VerificationConfig
from ewe.engine.loader import LoadedModel, load_model
from ewe.eval.veriscore import ClaimCounts, is_refusal, median_claims, veriscore
from ewe.memory.unit_template import fill_template
from ewe.protocols import Retriever, Verifier
from ewe.retrieval.open import open_retriever, open_source
from ewe.text.sentences import SentenceSplitter
from ewe.types import Claim, Generation, Verdict, VerificationRequest
from ewe.verification.open import open_verifier
from ewe.vocabulary import WIKIPEDIA_SAMPLE

_QUESTION = "Tell me about {title}."
_IN_PROMPT = "Context: {passages}\n{question}"
_GREEDY = SamplingParams(max_tokens=96, temperature=0)
_AT_ONCE = 12
_RESAMPLES = 2000
_ALONE = ("policy=plain", "verifier=none")
SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "plain": _ALONE,
    "prompt": _ALONE,
    "units": ("policy=ewe", "verifier=none"),
    "ewe": ("policy=ewe", "verifier=claims"),
    "ewe_complete": ("policy=ewe", "verifier=claims", "feedback.closed_world=true", "feedback.on_exhausted=drop"),
}


@dataclass(frozen=True, slots=True)
class Graded:
    """One answer with the verdict per distinct sentence that states something."""

    system: str
    title: str
    text: str
    verdicts: dict[str, str]
    rewrites: int

    @property
    def counts(self) -> ClaimCounts:
        """The sentences as VeriScore counts claims."""
        if is_refusal(self.text):
            return ClaimCounts(0, 0, refused=True)
        return ClaimCounts(self.num(Verdict.SUPPORTED), len(self.verdicts))

    def num(self, verdict: Verdict) -> int:
        """How many sentences got this verdict."""
        return sum(said == verdict.value for said in self.verdicts.values())


class Grader:
    """Verdicts on the sentences of answers, by another judge than the one that helped to write them."""

    def __init__(self, judge: str, retriever: Retriever) -> None:
        self._verifier: Verifier = open_verifier("claims", retriever, VerificationConfig(judge=judge))
        self._splitter = SentenceSplitter()

    def verdicts(self, prompt: str, text: str) -> dict[str, str]:
        """The verdict per distinct claim; what stands after the last full stop is left out."""
        spans = [span for span in self._splitter.split(text) if text[: span[1]].endswith((".", "!", "?", '"', ")"))]
        requests = [VerificationRequest(prompt, text[:start].rstrip(), text[start:end]) for start, end in spans]
        claims: list[Claim] = [claim for result in self._verifier.verify(requests) for claim in result.claims]
        return {claim.text: claim.verdict.value for claim in claims}


def answer(
    config: Config, loaded: LoadedModel, retriever: Retriever, system: str, titles: Sequence[str]
) -> list[Generation]:
    """An answer per article, greedily."""
    source = None if "policy=plain" in SYSTEMS[system] else retriever
    asked = [_QUESTION.format(title=title) for title in titles]
    if system == "prompt":
        asked = [_with_passages(config, retriever, question) for question in asked]
    with closing(LLM(config=config.override(SYSTEMS[system]), loaded=loaded, datastore=source)) as llm:
        return llm.chat([[{"role": "user", "content": text}] for text in asked], _GREEDY)


def _with_passages(config: Config, retriever: Retriever, question: str) -> str:
    found = [asdict(hit.passage) for hit in retriever.retrieve([question], config.feedback.retrieval_top_k)[0]]
    shown = "\n".join(fill_template(config.memory.unit_template, passage) for passage in found)
    return _IN_PROMPT.format(passages=shown, question=question)


def figures_of(rows: Mapping[str, Sequence[Graded]]) -> dict[str, Any]:
    """Per system: sentences, shares of verdicts with intervals, VeriScore at the K of all systems, and rewrites."""
    k = median_claims(row.counts for group in rows.values() for row in group)
    figures: dict[str, Any] = {"k": k}
    for system, group in rows.items():
        score = veriscore([row.counts for row in group], k)
        figures |= {f"{system}: answers": len(group), f"{system}: sentences": sum(len(row.verdicts) for row in group)}
        for verdict in (Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE):
            pairs = np.array([(row.num(verdict), len(row.verdicts)) for row in group])
            figures[f"{system}: {verdict.value}"] = _share(pairs)
        figures[f"{system}: f1"] = round(score.f1, 3)
        figures[f"{system}: rewrites"] = sum(row.rewrites for row in group)
    return figures


def _share(pairs: np.ndarray[Any, np.dtype[np.int64]]) -> list[float]:
    """[share, low, high] of (hits, sentences) per article, ends of the 95% interval from resampled articles."""
    drawn = np.random.default_rng(0).integers(len(pairs), size=(_RESAMPLES, len(pairs)))
    sums = pairs[drawn].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / np.maximum(sums[:, 1], 1), (0.025, 0.975))
    hits, total = pairs.sum(axis=0)
    return [round(float(value), 3) for value in (hits / max(total, 1), low, high)]


def _read(path: Path) -> list[Graded]:
    if not path.exists():
        return []
    return [Graded(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What this benchmark asks beside the common arguments."""
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--half", choices=["tune", "report"], default="tune")
    parser.add_argument("--limit", type=int, help="only the first articles")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="repeatable; default: all")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of all systems")
    parser.add_argument("--judge", default="base", help="the judge that grades")
    parser.add_argument("--answers", type=Path, required=True, help="JSONL with graded answers; a run goes on from it")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, add_arguments)
    config = Config.from_mapping({"model": {"name": arguments.model}}).override(arguments.set)
    source = open_source(WIKIPEDIA_SAMPLE)
    titles = sorted({passage.title for _, passage in source.scan()})[arguments.half == "report" :: 2][: arguments.limit]
    systems = arguments.system or list(SYSTEMS)
    kept = _read(arguments.answers)
    retriever = open_retriever(source, config.retrieval)
    grader, loaded = Grader(arguments.judge, retriever), load_model(config.model)
    with arguments.answers.open("a", encoding="utf-8") as file:
        for system in systems:
            known = {row.title for row in kept if row.system == system}
            missing = [title for title in titles if title not in known]
            for first in range(0, len(missing), _AT_ONCE):
                group = missing[first : first + _AT_ONCE]
                for title, said in zip(group, answer(config, loaded, retriever, system, group), strict=True):
                    verdicts = grader.verdicts(_QUESTION.format(title=title), said.text)
                    kept.append(Graded(system, title, said.text, verdicts, said.stats.rewrites))
                    file.write(json.dumps(asdict(kept[-1]), ensure_ascii=False) + "\n")
                file.flush()
    rows = {system: [row for row in kept if row.system == system and row.title in titles] for system in systems}
    settings = {"model": arguments.model, "half": arguments.half, "judge": arguments.judge, "set": arguments.set}
    report("long_answers", arguments, settings, figures_of(rows))


if __name__ == "__main__":
    main()
