"""What the question brings stands in the prompt; later looks become units beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from engine_parts import words
from mock_engine import Bench, CharTokenizer, CharUnits

from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.inputs.prompt_maker import PromptMaker
from ewe.engine.inputs.prompt_passages import PromptPassages
from ewe.engine.request import Request
from ewe.types import Passage, ScoredPassage
from ewe.types.sampling_params import SamplingParams

PROMPT = PlacedPrompt("sys: Who was it:", "sys: ", "Who was it:")
NAMES = "abcdefgh"


class Shelf:
    """A retriever that finds the first passages at every look; it notes how many it was asked for."""

    def __init__(self, veracity: float = 1.0) -> None:
        self.asked: list[int] = []
        self._veracity = veracity

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        self.asked.append(top_k)
        found = [Passage(name, f"note {name}.", veracity=self._veracity) for name in NAMES[:top_k]]
        return [[ScoredPassage(passage, 1.0) for passage in found] for _ in queries]


def bench_with(shelf: Shelf, max_model_len: int = 2000, top_k: int = 4) -> Bench:
    settings = {
        "memory": {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 1, "placement": "in_prompt"},
        "feedback": {"retrieve_every": 1, "retrieval_top_k": top_k},
        "pipeline": {"passages": 3},
    }
    config = Config.from_mapping(settings)
    bench = Bench(config, shelf, None, words("Aa bb. Cc dd. Ee."), max_model_len=max_model_len)
    prompts = PromptMaker(CharTokenizer(), CharUnits(24), config)  # type: ignore[arg-type]
    most = config.pipeline.passages
    bench.core.policies.effect_runner.prompt_passages = PromptPassages(prompts, bench.engine.input_processor, most)
    return bench


def ask(bench: Bench, prompt: Any = PROMPT, **params: Any) -> dict[Any, Any]:
    request = Request(prompt, SamplingParams(max_tokens=40, **params))
    bench.core.active.add(bench.engine.input_processor.build("a", request))
    return bench.run()


def events(generation: Any, kind: str) -> list[Any]:
    return [event.data for event in generation.trace if event.kind == kind]


def test_the_questions_passages_stand_in_the_prompt_and_later_ones_become_units() -> None:
    shelf = Shelf()
    generation = ask(bench_with(shelf))["a", 0]
    length = len("sys: note a.note b.note c.Who was it:")
    assert events(generation, "prompt") == [{"passages": ["a", "b", "c"], "num_prompt_tokens": length}]
    assert generation.stats.prompt_tokens == length
    assert generation.prompt == "sys: Who was it:"
    assert shelf.asked == [3, 4, 4]
    assert {unit["passage"]["id"] for unit in events(generation, "refresh")} == {"d"}, "those in the prompt stay there"
    assert set(generation.sources) == {"a", "b", "c", "d"}


def test_all_answers_of_a_request_read_the_same_prompt() -> None:
    finished = ask(bench_with(Shelf()), n=3)
    lengths = {generation.stats.prompt_tokens for generation in finished.values()}
    assert lengths == {len("sys: note a.note b.note c.Who was it:")}
    assert all(set(generation.sources) >= {"a", "b", "c"} for generation in finished.values())


def test_passages_that_leave_the_answer_no_room_are_left_out() -> None:
    room = len("sys: note a.Who was it:") + 24 + 40
    generation = ask(bench_with(Shelf(), max_model_len=room))["a", 0]
    assert [data["passages"] for data in events(generation, "prompt")] == [["a"]]
    assert len(generation.text) == len("Aa bb. Cc dd. Ee.")


def test_what_is_not_to_be_believed_is_left_out() -> None:
    generation = ask(bench_with(Shelf(veracity=0.0)))["a", 0]
    assert events(generation, "prompt") == []


@pytest.mark.parametrize("prompt", ["Who was it:", [5, 6, 7, 8]])
def test_a_prompt_without_a_place_for_memory_has_units(prompt: Any) -> None:
    bench = bench_with(Shelf(), top_k=2)
    generation = ask(bench, prompt)["a", 0] if isinstance(prompt, str) else None
    sequence = bench.engine.input_processor.build("b", Request(prompt, SamplingParams(max_tokens=4)))
    assert not bench.core.policies.effect_runner.prompt_passages.fits(sequence)  # type: ignore[union-attr]
    if generation is not None:
        assert events(generation, "prompt") == []
        assert {unit["passage"]["id"] for unit in events(generation, "refresh")} == {"a", "b"}
