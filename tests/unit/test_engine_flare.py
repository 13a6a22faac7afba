"""FLARE: an unsure sentence is written again, once, under what its sure words retrieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine_parts import Notebook, words
from mock_engine import Bench, MockRunner

from ewe.config import Config
from ewe.engine.model_executor.model_runner import ForwardRow
from ewe.types import Generation, ScoredPassage
from ewe.types.sampling_params import SamplingParams

TEXT = "Aa bb. Cc dd. Ee ff."


def config(**feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"policy": "flare", "memory": memory, "feedback": feedback})


def write(settings: Config, retriever: Any, script: Any) -> Generation:
    engine = Bench(settings, retriever, None, script)
    engine.add("a", "q:", SamplingParams(max_tokens=40))
    return engine.run()["a", 0]


def flare(script: Any, **feedback: Any) -> tuple[Generation, Notebook]:
    notebook = Notebook()
    # A certain token has probability 1 to about 1e-7: with 1.0 every sentence is unsure, with 0.9 none.
    return write(config(**feedback), notebook, script), notebook


def test_flare_leaves_sure_sentences_alone() -> None:
    generation, notebook = flare(words("", TEXT), flare_min_prob=0.9)
    assert notebook.queries == ["q:"]
    assert generation.text == TEXT
    assert generation.stats.rewrites == 0


class Wavering(MockRunner):
    """Certain of every character but the second "c" of "Cc"."""

    def _logits(self, row: ForwardRow) -> Any:
        self.strength = 4.5 if len(row.context_slots) == len("q:Aa bb. C") else 20.0
        return super()._logits(row)


class WaveringBench(Bench):
    runner_type = Wavering


def test_flare_rewrites_an_unsure_sentence_once_under_what_its_words_retrieve() -> None:
    notebook = Notebook()
    bench = WaveringBench(config(flare_min_prob=0.8, flare_mask_prob=0.6), notebook, None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40))
    generation = bench.run()["a", 0]

    # The unsure "c" is left out of the query; the second writing is kept although it is as unsure as the first.
    assert notebook.queries == ["q:", "C dd."]
    assert [(s.text, s.attempts, s.removed) for s in generation.sentences] == [
        ("Aa bb.", 1, ()),
        ("Cc dd.", 2, ("Cc dd.",)),
        ("Ee ff.", 1, ()),
    ]
    rewinds = [event.data["reason"] for event in generation.trace if event.kind == "rewind"]
    assert rewinds == ["unsure"]
    # What was found replaces the memory.
    last_row = [row for rows in bench.runner.rows_run for row in rows if row.wants_logits][-1]
    assert len(last_row.unit_slots) == 1
    assert generation.sources.keys() == {"p1", "p2"}


def test_flare_rewrites_every_unsure_sentence_once() -> None:
    generation, notebook = flare(words(TEXT), flare_min_prob=1.0, flare_mask_prob=0.0)
    assert notebook.queries == ["q:", "Aa bb.", "Cc dd.", "Ee ff."]
    assert [sentence.attempts for sentence in generation.sentences] == [2, 2, 2]
    assert generation.text == TEXT
    assert generation.finish_reason == "stop"


def test_flare_asks_with_the_prompt_if_every_word_is_unsure() -> None:
    _, notebook = flare(words("Aa."), flare_min_prob=1.0, flare_mask_prob=1.0)
    assert notebook.queries == ["q:", "q:"]


def test_flare_keeps_the_sentence_if_the_retrieval_fails() -> None:
    class Failing(Notebook):
        def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
            if self.queries:
                raise ConnectionError("gone")
            return super().retrieve(queries, top_k)

    generation = write(config(flare_min_prob=1.0), Failing(), words(TEXT))
    assert generation.text == TEXT
    assert [sentence.reason for sentence in generation.sentences] == ["the retrieval failed"] * 3
    assert generation.stats.rewrites == 0
