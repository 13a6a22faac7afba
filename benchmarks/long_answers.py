"""Long answers on 48 articles of Wikipedia: how many of their sentences the articles support, by system.

"Tell me about ..." for the articles of `wikipedia-sample`, put to a chat model that writes alone (plain), with the four
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

import numpy as np

from benchmarks.common import SMOKE, parse_arguments, report
from benchmarks.rig import load_synthetic
from ewe import LLM, SamplingParams
from ewe.config import Config, VerificationConfig
from ewe.config.setting_names import WIKIPEDIA_SAMPLE
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.engine.units.unit_text import fill_template
from ewe.evaluation.veriscore import ClaimCounts, is_refusal, median_claims, veriscore
from ewe.retrieval.open_retriever import open_retriever, open_source
from ewe.retrieval.source import PassageSource, as_source
from ewe.text.sentences import SentenceSplitter
from ewe.types import Generation, Passage, Verdict, VerificationRequest
from ewe.types.protocols import Retriever, Verifier
from ewe.verification.open_verifier import open_verifier

_QUESTION = "Tell me about {title}."
_IN_PROMPT = "Context: {passages}\n{question}"
_GREEDY = SamplingParams(max_tokens=96, temperature=0)
_AT_ONCE = 8
_ENDS = (".", "!", "?", '"', ")")
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

    def grade(self, system: str, title: str, said: Generation) -> Graded:
        """An answer with its verdicts; what stands after its last full stop is left out."""
        text = said.text
        spans = [span for span in self._splitter.split(text) if text[: span[1]].endswith(_ENDS)]
        prompt = _QUESTION.format(title=title)
        requests = [VerificationRequest(prompt, text[:start].rstrip(), text[start:end]) for start, end in spans]
        claims = [claim for result in self._verifier.verify(requests) for claim in result.claims]
        return Graded(system, title, text, {claim.text: claim.verdict.value for claim in claims}, said.stats.rewrites)


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


def figures_of(rows: Mapping[str, Sequence[Graded]]) -> dict[str, float]:
    """Per system: sentences, shares of verdicts with intervals, VeriScore's F1 at the K of all systems, rewrites."""
    k = median_claims(row.counts for group in rows.values() for row in group)
    figures = {"k": k}
    for system, group in rows.items():
        sentences = sum(len(row.verdicts) for row in group)
        figures |= {f"{system}: answers": len(group), f"{system}: sentences": sentences}
        for verdict in (Verdict.SUPPORTED, Verdict.REFUTED):
            figures |= _share(f"{system}: {verdict.value}", group, verdict)
        figures[f"{system}: f1"] = round(veriscore([row.counts for row in group], k).f1, 3)
        figures[f"{system}: rewrites"] = sum(row.rewrites for row in group)
    return figures


def _share(name: str, group: Sequence[Graded], verdict: Verdict) -> dict[str, float]:
    """Sentences with this verdict, and their share with the ends of its 95% interval."""
    pairs = np.array([(row.num(verdict), len(row.verdicts)) for row in group])
    hits, total = pairs.sum(axis=0)
    drawn = np.random.default_rng(0).integers(len(pairs), size=(_RESAMPLES, len(pairs)))
    sums = pairs[drawn].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / np.maximum(sums[:, 1], 1), (0.025, 0.975))
    shares = {"share": hits / max(total, 1), "low": low, "high": high}
    return {name: int(hits)} | {f"{name}, {end}": round(float(value), 3) for end, value in shares.items()}


def _read(path: Path | None) -> list[Graded]:
    if path is None or not path.exists():
        return []
    return [Graded(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _append(path: Path | None, rows: Sequence[Graded]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What this benchmark asks beside the common arguments."""
    parser.add_argument("--model", default="smollm2", help="a chat model")
    parser.add_argument("--half", choices=["tune", "report"], default="tune", help="half of the articles")
    parser.add_argument("--limit", type=int, help="only the first articles of the half")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="repeatable; default: all")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of all systems")
    parser.add_argument("--judge", default="base", help="the judge that grades")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="graded answers (JSONL); a run goes on from them")


def _setup(arguments: argparse.Namespace) -> tuple[Config, LoadedModel, PassageSource]:
    """Settings, model and passages; in a smoke run random weights, a made-up passage and the built-in judge."""
    config = Config.from_mapping({"model": {"name": arguments.model}}).override(arguments.set)
    if not arguments.smoke:
        return config, load_model(config.model), open_source(WIKIPEDIA_SAMPLE)
    loaded = load_synthetic(SMOKE, arguments.device)
    loaded.tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    arguments.judge = "builtin"
    tiny = ["retrieval.retriever=bm25", f"memory.unit_tokens={SMOKE.unit_tokens}"]
    return config.override(tiny), loaded, as_source([Passage("a", "Oslo has 3 ports.", "Oslo")])


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, add_arguments)
    config, loaded, source = _setup(arguments)
    titles = sorted({passage.title for _, passage in source.scan()})[arguments.half == "report" :: 2][: arguments.limit]
    systems = arguments.system or list(SYSTEMS)
    retriever = open_retriever(source, config.retrieval)
    grader, kept = Grader(arguments.judge, retriever), _read(arguments.answers)
    for system in systems:
        known = {row.title for row in kept if row.system == system}
        missing = [title for title in titles if title not in known]
        for first in range(0, len(missing), _AT_ONCE):
            group = missing[first : first + _AT_ONCE]
            said = answer(config, loaded, retriever, system, group)
            graded = [grader.grade(system, title, one) for title, one in zip(group, said, strict=True)]
            kept += graded
            _append(arguments.answers, graded)
    rows = {system: [row for row in kept if row.system == system and row.title in titles] for system in systems}
    settings = {"model": arguments.model, "half": arguments.half, "judge": arguments.judge, "set": arguments.set}
    report("long_answers", arguments, settings, figures_of(rows))


if __name__ == "__main__":
    main()
