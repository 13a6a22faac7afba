"""Rewinds as transactions: everything is as it was at that token, as in a run that never went further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from engine_bench import LATENCIES, DeepRunner, GatedBench, Latencies, Reader
from engine_parts import Judge, Library, number, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import CharTokenizer

from ewe.config import Config
from ewe.engine.sequence import Sequence as EngineSequence
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams


def config(mode: str, ahead: bool, **feedback: Any) -> Config:
    return Config.from_mapping(
        {
            "memory": {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 2},
            "cache": {"block_size": 4},
            "feedback": {"mode": mode, "verify_every": 3, **feedback},
            "scheduler": {"async_scheduling": ahead},
        }
    )


class History:
    """The state of a sequence at each of its lengths, on the way that it went last."""

    def __init__(self, bench: GatedBench, sequence: EngineSequence) -> None:
        self._bench = bench
        self._sequence = sequence
        self._states: dict[int, Any] = {}
        self.rewinds = 0
        rewinder = bench.core.policies.effect_runner._rewinder
        go_back = rewinder.rewind

        def checked(target: EngineSequence, index: int, reason: str) -> None:
            go_back(target, index, reason)
            self._compare()

        rewinder.rewind = checked  # type: ignore[method-assign]

    def note(self) -> None:
        self._states[len(self._sequence.output_text)] = self._state()

    def _state(self) -> Any:
        sequence, draft, pool = self._sequence, self._sequence.output_text, self._bench.runner.pool
        # A pass that was launched ahead has written one more.
        slots = sequence.table.slots()[: len(sequence.request.prompt_ids) + len(draft) - 1].tolist()
        cached = [(pool.keys[0][slot].item(), pool.values[0][slot].item()) for slot in slots]
        sampling = self._bench.core._sampling_row(sequence)
        drawn_from = (list(sampling.output_ids), sampling.banned, sampling.index, sampling.seed, sampling.params)
        text = (draft.text, draft.text_end, draft.held_back_chars(), sequence.finish)
        return list(draft.tokens), list(draft.ids), text, cached, drawn_from, list(draft.sentences)

    def _compare(self) -> None:
        self.rewinds += 1
        now, length = self._state(), len(self._sequence.output_text)
        if length:
            before = self._states[length]
            assert now[:-1] == before[:-1]
            known = len(before[-1])  # by now more of the kept sentences may be known to be complete
            assert now[-1][:known] == before[-1]
        else:
            before = self._states[1]
            assert now[:3] == ([], [], ("", None, 0, None))
            assert now[3] == before[3][:-1]
        assert all(span.end <= len(now[2][0]) for span in now[-1])
        assert len(self._sequence.feedback.states) <= len(now[-1])
        assert not self._sequence.policy.checks
        assert self._sequence.policy.retrieval is None
        self._states = {size: state for size, state in self._states.items() if size <= length or size == 1}


@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
@examples(5, 12)
@given(data=st.data())
def test_the_state_after_a_rewind_is_the_state_of_then(mode: str, data: st.DataObject) -> None:
    on_exhausted = data.draw(st.sampled_from(["keep_best", "flag", "drop"]))
    salt = data.draw(st.integers(0, 10**6))
    judge = Judge(lambda sentence: Verdict.REFUTED if number(salt, sentence) % 3 == 0 else Verdict.SUPPORTED)
    ahead, penalty = data.draw(st.sampled_from([(False, 0.5), (True, 0.5), (True, 0.0)]))
    bench = GatedBench(config(mode, ahead, on_exhausted=on_exhausted), Library(), judge, sentences)
    bench.runner.strength = 6.0
    params = SamplingParams(
        max_tokens=45,
        temperature=data.draw(st.sampled_from([0.0, 0.9])),
        seed=salt,
        presence_penalty=penalty,
        frequency_penalty=penalty / 2,
        repetition_penalty=1 + penalty / 5,
        min_tokens=5,
        stop=data.draw(st.sampled_from([(), ("abc", ". A"), ("j. Bc",)])),
    )
    reader = Reader()
    sequence = bench.add("a", f"Tell {'abcdefgh'[salt % 8]} me", params, listener=reader)
    history = History(bench, sequence)
    latencies = data.draw(LATENCIES)
    for _ in range(5000):
        bench.release_due(latencies)
        if not bench.step():
            break
        bench.check()
        history.note()
    generation = bench.finished["a", 0]
    assert generation.stats.rewrites == history.rewinds
    assert reader.text == generation.text
    assert len(generation.logprobs) == len(generation.token_ids)


# --- tokens that are no characters: some end one sentence and begin the next

PIECES = ("", " ", "a", "b c", ".", ". A", "B", ". ", "e.", ".\n\n", "F g", "h. I j. K", " l", "M", "n o p")


class PieceTokens(CharTokenizer):
    def __call__(self, text: str, add_special_tokens: bool = True, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": [1 + number(char) % (len(PIECES) - 1) for char in text]}

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        return "".join(PIECES[i] for i in ids)


class PieceRunner(DeepRunner):
    vocabulary = PIECES


class PieceBench(GatedBench):
    runner_type = PieceRunner

    def add(self, *args: Any, **options: Any) -> EngineSequence:
        self.engine.input_processor.tokenizer = PieceTokens()
        return super().add(*args, **options)


def run_pieces(mode: str, prompt: str, latencies: Latencies, ahead: bool = False, **feedback: Any) -> Any:
    """The essence of one answer; the reader has seen to it that nothing final was taken back."""
    bench = PieceBench(config(mode, ahead, **feedback), Library(), Judge())
    reader = Reader()
    params = SamplingParams(max_tokens=50, ignore_eos=True, temperature=0.7, seed=3)
    bench.add("a", prompt, params, listener=reader)
    generation = bench.run_with(latencies)["a", 0]
    assert reader.text == generation.text
    assert generation.text == "".join(PIECES[i] for i in generation.token_ids)
    for sentence in generation.sentences:
        assert generation.text[sentence.start : sentence.end] == sentence.text
    ends = [sentence.end for sentence in generation.sentences]
    assert [sentence.start >= end for end, sentence in zip([0, *ends], generation.sentences, strict=False)]
    parts = [(s.text, s.verdict, s.attempts, s.removed) for s in generation.sentences]
    return generation.text, generation.token_ids, parts, generation.stats.rewrites


@examples(4, 15)
@given(
    prompt=st.text("abcdefgh", min_size=1, max_size=6),
    latencies=LATENCIES,
    verify_every=st.integers(1, 6),
    on_exhausted=st.sampled_from(["keep_best", "flag", "drop"]),
    ahead=st.booleans(),
)
def test_tokens_that_straddle_sentences(
    prompt: str, latencies: Latencies, verify_every: int, on_exhausted: str, ahead: bool
) -> None:
    feedback = {"verify_every": verify_every, "on_exhausted": on_exhausted}
    expected = run_pieces("blocking", prompt, Latencies(), **feedback)
    assert run_pieces("optimistic", prompt, latencies, ahead, **feedback) == expected
