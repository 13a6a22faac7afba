"""What it costs a batch that every sentence is checked while it is written, and what several wordings of one cost.

64 answers at once over documents that all share, first plainly, then under policy ewe: before every sentence it
retrieves from passages of the same made-up words, and the built-in judge checks each beside decoding, on the same
device. What the judge says of such words is by chance, so all it finds is taken for supported: nothing is written
twice, and the ratio is the price of checking. Then 16 answers whose every sentence is refuted once and drawn again, in
one wording or in four: the mean time of their steps. Models are random, with a sentence about every 15 tokens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median
from time import perf_counter
from typing import Any

from benchmarks.common import Sections, Size, parse_arguments, pick_size, text_of
from benchmarks.rig import load_synthetic, write_together
from ewe import LLM, SamplingParams
from ewe.components import open_checker
from ewe.config import Config
from ewe.config.lazy import warm
from ewe.engine.models.loader import LoadedModel
from ewe.open_datastore import open_datastore
from ewe.retrieval.datastore import Datastore
from ewe.types import Claim, Evidence, Generation, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import Retriever, Verifier

_UNITS = 4  # per lane
_WORDS = 60  # of a passage


@dataclass(frozen=True, slots=True)
class Work:
    """Answers checked at once, answers drawn in wordings, tokens of each, and passages in the datastore."""

    checked: int
    drawn: int
    answer: int
    passages: int


class Lenient:
    """A verifier whose work is done and whose refutations do not count; sentences: how many it has checked."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier, self.sentences = verifier, 0

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """Every claim that was found, as supported."""
        found = self._verifier.verify(requests)
        self.sentences += sum(bool(result.claims) for result in found)
        return [
            VerificationResult(tuple(replace(claim, verdict=Verdict.SUPPORTED) for claim in result.claims))
            for result in found
        ]


class RefusesOnce:
    """Refutes a sentence that it has not heard of after this text, at once; whatever follows on it is supported."""

    def __init__(self, passage: Passage) -> None:
        self._passage, self._refused = passage, set[tuple[str, str]]()

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One claim per sentence."""
        return [self._judge(request) for request in requests]

    def _judge(self, request: VerificationRequest) -> VerificationResult:
        place = request.prompt, request.preceding
        verdict = Verdict.SUPPORTED if place in self._refused else Verdict.REFUTED
        self._refused.add(place)
        text = request.sentence
        claim = Claim(text, 0, len(text), verdict, 1.0, (self._passage.id,))
        return VerificationResult((claim,), (Evidence(self._passage, verdict, 1.0, self._passage.text),))


def passages_of(size: Size, count: int) -> Datastore:
    """Passages of the words that a random model of this size writes."""
    draw, words = random.Random(0), size.model["vocab_size"] - 300
    texts = (" ".join(f"word{draw.randrange(words)}" for _ in range(_WORDS)) for _ in range(count))
    return Datastore(Passage(str(number), f"{text}.", f"Word {number}") for number, text in enumerate(texts))


def settings_of(policy: str, batch: int, size: Size, work: Work, device: str, wordings: int = 1) -> dict[str, Any]:
    """An engine's settings, with room for every answer and its passages."""
    capacity = 2 * batch * wordings * (work.answer + size.prompt_tokens) + 4 * batch * _UNITS * size.unit_tokens
    return {
        "policy": policy,
        "model": {"device": device},
        "memory": {"retrieval_units": _UNITS, "verification_units": _UNITS, "unit_tokens": size.unit_tokens},
        "feedback": {"wordings": wordings},
        "cache": {"num_blocks": capacity // 16 + 64},
        "scheduler": {"max_num_seqs": batch * wordings},
    }


def write(
    llm: LLM, size: Size, batch: int, answer: int, seed: int, documents: Sequence[str] | None
) -> list[Generation]:
    """So many answers of the same length at once."""
    params = SamplingParams(max_tokens=answer, temperature=1.0, ignore_eos=True)
    vocabulary = random.Random(seed)
    prompts = [vocabulary.choices(range(300, size.model["vocab_size"]), k=size.prompt_tokens) for _ in range(batch)]
    jobs = [(prompt, replace(params, seed=seed + n), documents) for n, prompt in enumerate(prompts)]
    return write_together(llm, jobs)


def throughput(
    loaded: LoadedModel,
    size: Size,
    work: Work,
    config: dict[str, Any],
    repeats: int,
    checks: tuple[Any, Any] = (None, None),
) -> float:
    """Tokens that are kept per second, the median; checks: retriever and verifier of answers that are not plain."""
    retriever, verifier = checks
    documents = None if retriever else [text_of(size.unit_tokens, number) for number in range(_UNITS)]
    rates = []
    with LLM(config=config, loaded=loaded, datastore=retriever, verifier=verifier) as llm:
        write(llm, size, work.checked, work.answer, 1, documents)  # compiles and captures
        for number in range(repeats):
            begin = perf_counter()
            answers = write(llm, size, work.checked, work.answer, 1000 * (number + 2), documents)
            rates.append(sum(item.stats.tokens_kept for item in answers) / (perf_counter() - begin))
    return median(rates)


def measure_checks(loaded: LoadedModel, size: Size, work: Work, device: str, repeats: int) -> dict[str, float]:
    """Answers whose every sentence is checked over plain ones."""
    plain = throughput(loaded, size, work, settings_of("plain", work.checked, size, work, device), repeats)
    config = settings_of("ewe", work.checked, size, work, device)
    retriever, verifier = _judge(Config.model_validate(config), size, work)
    checked = throughput(loaded, size, work, config, repeats, (retriever, verifier))
    name = f"batch_{work.checked}"
    return {
        f"{name}_plain_tokens_per_s": round(plain, 1),
        f"{name}_checked_tokens_per_s": round(checked, 1),
        f"{name}_checked_over_plain": round(checked / plain, 3),
        f"{name}_sentences_checked_per_answer": round(verifier.sentences / (work.checked * (repeats + 1)), 1),
    }


def _judge(config: Config, size: Size, work: Work) -> tuple[Retriever, Lenient]:
    retriever, _ = open_datastore(passages_of(size, work.passages), config.retrieval)
    assert retriever is not None
    verifier = open_checker(config, retriever)
    warm(verifier)
    return retriever, Lenient(verifier)


def measure_wordings(loaded: LoadedModel, size: Size, work: Work, device: str) -> dict[str, float]:
    """A step with four wordings of every sentence over one with one."""
    steps = {count: _step(loaded, size, work, device, count) for count in (1, 4)}
    name = f"batch_{work.drawn}"
    figures = {f"{name}_wordings_{count}_step_ms": round(1e3 * step, 3) for count, step in steps.items()}
    return figures | {f"{name}_wordings_4_over_1": round(steps[4] / steps[1], 3)}


def _step(loaded: LoadedModel, size: Size, work: Work, device: str, wordings: int) -> float:
    """Seconds per pass of answers that write every sentence twice, the second time in so many wordings."""
    config = settings_of("ewe", work.drawn, size, work, device, wordings)
    verifier = RefusesOnce(Passage("0", text_of(size.unit_tokens // 4, 0)))
    with LLM(config=config, loaded=loaded, verifier=verifier) as llm:
        write(llm, size, work.drawn, work.answer, 1, None)  # compiles and captures
        answers = write(llm, size, work.drawn, work.answer, 2000, None)
    if not all(item.stats.rewrites for item in answers):
        raise RuntimeError("an answer has no sentence that was written again")
    return fmean(item.stats.decode_s / item.stats.passes for item in answers)


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    size, device = pick_size(arguments), arguments.device
    on_gpu = device.startswith("cuda") and not arguments.smoke
    work = Work(64, 16, 96, 2000) if on_gpu else Work(2, 2, 32, 50) if arguments.smoke else Work(8, 4, 64, 2000)
    loaded = load_synthetic(size, device)
    settings = {"model": size.name, "dtype": size.dtype, "answer_tokens": work.answer, "unit_tokens": size.unit_tokens}
    sections = Sections("checked_throughput", arguments, settings)
    checks = partial(measure_checks, loaded, size, work, device, arguments.repeats)
    sections.take("checks", checks)
    sections.take("wordings", partial(measure_wordings, loaded, size, work, device))
    sections.close()


if __name__ == "__main__":
    main()
