"""LLM with the built-in model, datastore and verifier: verdicts, rewrites and memory where sentences are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from real_models import model_path
from unit.engine_parts import number

from ewe import LLM, Claim, Evidence, Generation, Passage, SamplingParams, Verdict
from ewe.config import resolve_config
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.evaluation.world.builtin import load_world
from ewe.types import VerificationRequest, VerificationResult

pytestmark = pytest.mark.skipif(
    not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights in this checkout"
)
PARAMS = SamplingParams(max_tokens=70)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model(resolve_config("builtin", None).model)


@pytest.fixture(scope="module")
def prompts() -> list[str]:
    return [prompt.text for prompt in load_world().prompts()[:3]]


@pytest.fixture(scope="module")
def llm(loaded: LoadedModel) -> Iterator[LLM]:
    with LLM(loaded=loaded) as engine:
        yield engine
        engine.check_integrity()


class Strict:
    """Refutes about half of all sentences, by their letters; its evidence names the sentence."""

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [self._judge(request.sentence) for request in requests]

    def _judge(self, sentence: str) -> VerificationResult:
        verdict = Verdict.REFUTED if number(sentence) % 2 == 0 else Verdict.SUPPORTED
        passage = Passage(f"e{number(sentence) % 1000}", f"It is not true that {sentence}", title="A note")
        return VerificationResult((Claim(sentence, verdict=verdict),), (Evidence(passage, verdict, 1.0),))


def outline(generation: Generation) -> list[tuple[object, ...]]:
    return [(s.text, s.verdict, s.attempts, s.removed) for s in generation.sentences]


def test_answers_are_checked_and_say_so(llm: LLM, prompts: list[str]) -> None:
    for generation in llm.generate(prompts, PARAMS):
        assert generation.finish_reason in ("stop", "length")
        assert generation.sentences
        for sentence in generation.sentences:
            assert generation.text[sentence.start : sentence.end] == sentence.text
            assert set(sentence.source_ids) <= generation.sources.keys()
            assert sentence.verdict is not Verdict.NOT_CHECKED or sentence.reason
        assert generation.stats.refreshes > 0
        assert generation.stats.verifications > 0
        kinds = [event.kind for event in generation.trace]
        assert (kinds[0], kinds[-1]) == ("start", "finish")


def test_the_same_again_is_the_same_and_costs_no_new_units(llm: LLM, prompts: list[str]) -> None:
    [first], [second] = llm.generate(prompts[0], PARAMS), llm.generate(prompts[0], PARAMS)
    assert (second.text, second.token_ids) == (first.text, first.token_ids)
    assert outline(second) == outline(first)
    assert second.stats.unit_tokens_encoded == 0


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_both_modes_write_the_same_whenever_the_answers_come(loaded: LoadedModel, temperature: float) -> None:
    """The threads of retriever and verifier answer when they like."""
    lives = [prompt.text for prompt in load_world().prompts(kinds=("life",))[:2]]
    params = SamplingParams(max_tokens=40, temperature=temperature, seed=4)
    found = []
    for mode, ahead in (("blocking", "false"), ("optimistic", "false"), ("blocking", "true"), ("optimistic", "true")):
        settings = [f"feedback.mode={mode}", "verifier=null", f"scheduler.async_scheduling={ahead}"]
        config = resolve_config("builtin", None).override(settings)
        with LLM(config=config, loaded=loaded, verifier=Strict()) as llm:
            results = llm.generate(lives, params)
            found.append([(g.text, g.token_ids, outline(g), g.stats.rewrites) for g in results])
            llm.check_integrity()
    assert all(results == found[0] for results in found)
    assert sum(rewrites for _, _, _, rewrites in found[0]) > 0


def test_a_stream_shows_sentences_with_their_verdicts(llm: LLM, prompts: list[str]) -> None:
    text, shown = "", []
    for event in llm.stream(prompts[0], PARAMS):
        if event.kind == "sentence":
            shown.append((event.data["text"], event.data["verdict"]))
        elif event.kind == "text":
            text += event.data["text"]
    assert text == event.generation.text
    assert shown == [(sentence.text, sentence.verdict.value) for sentence in event.generation.sentences]


def test_documents_are_used_without_a_datastore(loaded: LoadedModel, prompts: list[str]) -> None:
    config = resolve_config("builtin", None).override(["datastore=null", "verifier=null"])
    with LLM(config=config, loaded=loaded) as llm:
        [without] = llm.generate(prompts[0], PARAMS)
        [with_it] = llm.generate(prompts[0], PARAMS, documents=[load_world().passages[0]])
        assert without.text != with_it.text
        assert with_it.sources.keys() == {load_world().passages[0].id}
        assert {sentence.reason for sentence in with_it.sentences} == {"no verifier"}
