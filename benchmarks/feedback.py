"""What retrieval and verification cost a whole batch, if it waits for them and if it does not.

Many answers are asked for at once, more than may run at a time, so that others can fill the place of one that waits
(temperature 1, random model, a sentence about every 15 tokens), with a look at every token for retrieval and at every
eighth for verification. A scripted retriever and verifier take 50 or 200 ms per call and refute a share of the
sentences; each call serves all that have queued up. All passages are encoded before, as hot ones are in a server: what
encoding one costs is `refresh_cost`'s matter. Throughput in tokens per second, over that of plain decoding by the same
engine under as many units, and, for scale, over none; taken until the answers that are left could no longer fill the
batch if a half of them waited. In blocking mode a sequence leaves the batch while it waits; in optimistic mode it goes
on and returns if its sentence was refuted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from statistics import median

import torch

from benchmarks import plots
from benchmarks.common import Sections, Size, parse_arguments, pick_size, text_of
from benchmarks.rig import load_synthetic, write_together
from ewe import LLM, SamplingParams
from ewe.engine.models.loader import LoadedModel
from ewe.engine.sequence import Sequence as EngineSequence
from ewe.types import Claim, Evidence, Passage, ScoredPassage, Verdict, VerificationRequest, VerificationResult

_PASSAGES = 64
_UNITS = 4  # per lane


@dataclass(frozen=True, slots=True)
class Work:
    """Answers in all, answers that run at once, tokens of each, tokens of a passage."""

    answers: int
    batch: int
    answer: int
    passage: int


@dataclass(frozen=True, slots=True)
class Script:
    """How the components behave: seconds per call, the share of sentences refuted at their first attempt, the mode."""

    latency_s: float
    refuted: float
    mode: str

    @property
    def name(self) -> str:
        """How figures call it."""
        return f"{self.mode}_latency_{round(1000 * self.latency_s)}_ms_refuted_{round(100 * self.refuted)}_percent"


# The case that matters most comes first; then one thing at a time is another.
_SCRIPTS = (
    Script(0.05, 0.05, "optimistic"),
    Script(0.05, 0.05, "blocking"),
    Script(0.05, 0.0, "optimistic"),
    Script(0.05, 0.0, "blocking"),
    Script(0.2, 0.05, "optimistic"),
    Script(0.05, 0.2, "optimistic"),
)


class Library:
    """A retriever and verifier in one: what it says follows from the text it is given alone."""

    def __init__(self, script: Script, passage_tokens: int) -> None:
        self._script = script
        self._passages = [Passage(f"p{number}", text) for number, text in enumerate(_texts(passage_tokens))]

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """One passage per query, after the latency."""
        time.sleep(self._script.latency_s)
        return [[ScoredPassage(self._passages[int(_share(query) * _PASSAGES)], 1.0)] for query in queries]

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One claim per sentence, after the latency."""
        time.sleep(self._script.latency_s)
        return [self._judge(request.sentence) for request in requests]

    def _judge(self, sentence: str) -> VerificationResult:
        share = _share(sentence)
        verdict = Verdict.REFUTED if share < self._script.refuted else Verdict.SUPPORTED
        passage = self._passages[int(share * 1e6) % _PASSAGES]
        claim = Claim(sentence, 0, len(sentence), verdict, 1.0, (passage.id,))
        evidence = (Evidence(passage, verdict, 1.0, passage.text),) if verdict is Verdict.REFUTED else ()
        return VerificationResult((claim,), evidence)


def _texts(passage_tokens: int) -> list[str]:
    """The passages that there are."""
    return [text_of(passage_tokens, number) for number in range(_PASSAGES)]


def _share(text: str) -> float:
    """A number in [0, 1) that belongs to the text."""
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48


class Meter:
    """Tokens per second until `most_left` answers are left; `take` is called when one has ended."""

    def __init__(self, most_left: int) -> None:
        self._most_left = most_left
        self._start = time.perf_counter()
        self.rate = 0.0

    def take(self, sequences: Sequence[EngineSequence]) -> None:
        """Looks at the clock if the answers of these sequences are few enough."""
        if not self.rate and sum(not sequence.is_finished for sequence in sequences) <= self._most_left:
            self.rate = sum(len(sequence.output_text) for sequence in sequences) / (time.perf_counter() - self._start)


def throughput(
    loaded: LoadedModel, size: Size, work: Work, script: Script | None, documents: int = 0
) -> tuple[float, float]:
    """Tokens per second, and tokens discarded per kept one; without a script plain decoding under documents."""
    capacity = work.answers * (work.answer + 9 * size.unit_tokens) + _PASSAGES * size.unit_tokens
    config = {
        "policy": "ewe" if script else "plain",
        "memory": {"retrieval_units": _UNITS, "verification_units": _UNITS, "unit_tokens": size.unit_tokens},
        "feedback": {"mode": script.mode if script else "blocking", "retrieve_every": 1, "verify_every": 8},
        "cache": {"num_blocks": capacity // 16 + 64},
        "scheduler": {"max_num_seqs": work.batch, "max_num_batched_tokens": 4096},
    }
    library = Library(script, work.passage) if script else None
    passages = _texts(work.passage)
    with LLM(config=config, loaded=loaded, datastore=library, verifier=library) as llm:

        def write(answers: int, seed: int) -> tuple[float, float]:
            params = SamplingParams(max_tokens=work.answer, temperature=1.0, ignore_eos=True)
            jobs = [
                ([5, 6, 7 + n], replace(params, seed=seed + n), _some(passages, n * documents, documents))
                for n in range(answers)
            ]
            meter = Meter(min(2 * work.batch, answers - 1))
            written = write_together(llm, jobs, meter.take)
            kept = sum(len(answer.token_ids) for answer in written)
            return meter.rate, sum(answer.stats.tokens_discarded for answer in written) / kept

        encoding = SamplingParams(max_tokens=1)
        write_together(llm, [([5], encoding, _some(passages, n, _UNITS)) for n in range(0, _PASSAGES, _UNITS)])
        write(work.batch, 1000)  # compiles and captures
        return write(work.answers, 0)


def _some(passages: Sequence[str], begin: int, count: int) -> list[str] | None:
    """Passages from one on, beginning again after the last."""
    return [passages[number % len(passages)] for number in range(begin, begin + count)] or None


def measure(loaded: LoadedModel, size: Size, work: Work, base: dict[str, float], script: Script) -> dict[str, float]:
    """One script's throughput over those of plain decoding, which `base` holds."""
    rate, discarded = throughput(loaded, size, work, script)
    return {
        f"{script.name}_tokens_per_s": round(rate, 1),
        f"{script.name}_over_plain": round(rate / base["plain_tokens_per_s"], 3),
        f"{script.name}_over_no_memory": round(rate / base["no_memory_tokens_per_s"], 3),
        f"{script.name}_discarded_per_token": round(discarded, 3),
    }


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""

    def lines(mode: str) -> dict[str, dict[float, float]]:
        figures = plots.found(document["figures"], rf"{mode}_latency_(\d+_ms_refuted_\d+)_percent_over_plain")
        by_latency: dict[int, dict[str, float]] = {}
        for name, share in figures.items():
            latency, refuted = name.split("_ms_refuted_")
            by_latency.setdefault(int(latency), {})[refuted] = share
        return {f"{latency} ms per check": plots.by_number(points) for latency, points in sorted(by_latency.items())}

    return [
        plots.Panel(
            f"Checks while {what} ({mode})",
            "sentences refuted at their first attempt (percent)",
            "tokens per second over plain decoding's",
            lines(mode),
            (1.0, "plain decoding"),
        )
        for mode, what in (("optimistic", "decoding goes on"), ("blocking", "the sequence waits"))
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    on_gpu = arguments.device.startswith("cuda")
    work = Work(160, 32, 96, size.unit_tokens) if on_gpu else Work(16, 4, 48, size.unit_tokens // 4)
    scripts: Sequence[Script] = _SCRIPTS
    if arguments.smoke:
        work, scripts = Work(3, 1, 24, 16), (Script(0.001, 0.5, "optimistic"), Script(0.001, 0.5, "blocking"))
    loaded = load_synthetic(size, arguments.device)
    settings = {
        "model": size.name,
        "dtype": size.dtype,
        "answers": work.answers,
        "batch": work.batch,
        "answer_tokens": work.answer,
        "unit_tokens": size.unit_tokens,
        "passage_tokens": work.passage,
    }
    sections = Sections("feedback", arguments, settings)
    base: dict[str, float] = {}

    def plain() -> dict[str, float]:
        for name, documents in (("plain", _UNITS), ("no_memory", 0)):
            rates = [throughput(loaded, size, work, None, documents)[0] for _ in range(arguments.repeats)]
            base[f"{name}_tokens_per_s"] = round(median(rates), 1)
        return base

    sections.take("plain", plain)
    for script in scripts:
        sections.take(script.name, partial(measure, loaded, size, work, base, script))
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
