"""What share of the time verification adds, if it waits for each verdict and if it does not.

A verifier of a fixed latency checks every sentence of one answer; it either supports all of them or refutes every fifth
once. Against the same answer without a verifier: in blocking mode each check stands in the way, in optimistic mode
decoding goes on meanwhile and rolls back if a sentence was refuted. Model and text are random (temperature 1), with a
sentence about every 15 tokens, so the time does not depend on what a model happens to know.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks import plots
from benchmarks.common import parse_arguments, pick_size, report, text_of
from benchmarks.rig import load_synthetic
from ewe import LLM, SamplingParams
from ewe.engine.models.loader import LoadedModel
from ewe.types import Claim, Evidence, Generation, Passage, Verdict, VerificationRequest, VerificationResult


class SlowVerifier:
    """Answers after `latency_s` seconds; refutes every `refute_every`-th request (0: none), by one passage each."""

    def __init__(self, latency_s: float, refute_every: int, evidence_tokens: int) -> None:
        self.latency_s, self.refute_every, self.evidence_tokens = latency_s, refute_every, evidence_tokens
        self.seen = 0

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One result per request, after the latency."""
        time.sleep(self.latency_s)
        return [self._judge(request) for request in requests]

    def _judge(self, request: VerificationRequest) -> VerificationResult:
        self.seen += 1
        refuted = self.refute_every > 0 and self.seen % self.refute_every == 0
        verdict = Verdict.REFUTED if refuted else Verdict.SUPPORTED
        passage = Passage(id=str(self.seen), text=text_of(self.evidence_tokens, self.seen))
        claim = Claim(request.sentence, 0, len(request.sentence), verdict, 1.0, (passage.id,))
        return VerificationResult((claim,), (Evidence(passage, verdict, 1.0, passage.text),))


def write(
    loaded: LoadedModel, unit_tokens: int, num_tokens: int, mode: str, verifier: SlowVerifier | None
) -> Generation:
    """One answer of `num_tokens` tokens, after a short one that warms the engine up."""
    config = {
        "memory": {"retrieval_units": 0, "verification_units": 8, "unit_tokens": unit_tokens},
        "feedback": {"mode": mode},
        "cache": {"num_blocks": (16 * unit_tokens + 4 * num_tokens) // 16},
    }
    with LLM(config=config, loaded=loaded, verifier=verifier) as llm:
        llm.generate([[5, 6, 7]], SamplingParams(max_tokens=32, temperature=1.0, seed=2, ignore_eos=True))
        params = SamplingParams(max_tokens=num_tokens, temperature=1.0, seed=1, ignore_eos=True)
        [generation] = llm.generate([[5, 6, 7]], params)
    return generation


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""

    def bars(mode: str) -> dict[str, float]:
        added = plots.found(document["figures"], rf"{mode}_latency_([\d.]+_s_refuting_\w+)_share_added")
        return {name.replace("_s_", " s per check,\n").replace("_", " "): share for name, share in added.items()}

    modes = {mode: bars(mode) for mode in ("blocking", "optimistic")}
    return [plots.Panel("What verification adds to one answer", "", "share of the whole time", modes)]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    num_tokens, latencies = (40, (0.0, 0.01)) if arguments.smoke else (256, (0.0, 0.05, 0.5))
    loaded = load_synthetic(size, arguments.device)
    evidence_tokens = size.unit_tokens // 4

    def run(mode: str, verifier: SlowVerifier | None) -> Generation:
        return write(loaded, size.unit_tokens, num_tokens, mode, verifier)

    base = min(run("blocking", None).stats.total_s for _ in range(arguments.repeats))
    figures: dict[str, float] = {"without_verifier_s": round(base, 3)}
    for refute_every in (0, 5):
        for latency in latencies:
            for mode in ("blocking", "optimistic"):
                stats = run(mode, SlowVerifier(latency, refute_every, evidence_tokens)).stats
                name = f"{mode}_latency_{latency:g}_s_refuting_{'1_in_5' if refute_every else 'none'}"
                figures[f"{name}_s"] = round(stats.total_s, 3)
                figures[f"{name}_share_added"] = round(1 - base / stats.total_s, 3)
                figures[f"{name}_waiting_share"] = round(stats.verification_wait_s / stats.total_s, 3)
                if refute_every:
                    figures[f"{name}_tokens_discarded"] = stats.tokens_discarded
    settings = {
        "model": size.name,
        "dtype": size.dtype,
        "answer_tokens": num_tokens,
        "unit_tokens": size.unit_tokens,
        "evidence_tokens": evidence_tokens,
    }
    plots.draw(arguments.plot, panels, report("verification_overhead", arguments, settings, figures))


if __name__ == "__main__":
    main()
