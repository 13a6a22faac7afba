"""LLM: what is wrong with a request or with settings is said clearly, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from e2e.llm_rig import MAX_LEN, loaded, tiny_llm

from ewe import LLM, Passage, SamplingParams, ScoredPassage
from ewe.errors import ConfigError, InvalidRequestError
from ewe.types import VerificationRequest, VerificationResult

TEN = SamplingParams(max_tokens=10, ignore_eos=True)


class Supporter:
    """A verifier without an opinion."""

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [VerificationResult()] * len(requests)


class Nothing:
    """A retriever that finds nothing."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        return [[] for _ in queries]


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with tiny_llm() as engine:
        yield engine
        engine.check_integrity()


@pytest.mark.parametrize(
    ("prompts", "params", "documents", "names"),
    [
        ("", TEN, None, ["prompt: this is empty"]),
        ("  \n", TEN, None, ["prompt: this is empty"]),
        (["The river", ""], TEN, None, ["prompt: this is empty"]),
        ([[1, 2], []], TEN, None, ["prompt: this is empty"]),
        ("sea " * 300, TEN, None, ["model.max_model_len 400", "leaves room for 399"]),
        ("sea " * 300, TEN, ["a"], ["model.max_model_len 400", "memory.unit_tokens 24", "room for 375"]),
        ([1, 5000], TEN, None, ["5000", "token id"]),
        (None, TEN, None, ["a prompt is a text", "NoneType"]),
        ({"prompt": "a"}, TEN, None, ["a prompt is a text", "mapping", "'prompt_token_ids'"]),
        ([{"prompt_token_ids": [1]}], TEN, None, ["a prompt is a text", "mapping"]),
        (b"abc", TEN, None, ["a prompt is a text", "bytes"]),
        (["a", 5], TEN, None, ["a prompt is a text", "int"]),
        ("a \ud800", TEN, None, ["prompt", "surrogate pair at 2"]),
        ("a", TEN, ["x", "b\udcff"], ["document-2", "surrogate pair at 1"]),
        ("a", {"max_tokens": 3}, None, ["sampling_params must be SamplingParams", "dict"]),
        ("a", [{"max_tokens": 3}], None, ["sampling_params must be SamplingParams", "dict"]),
        ("a", "x", None, ["sampling_params must be SamplingParams", "str"]),
        (["a", "b"], [TEN], None, ["1 SamplingParams for 2 prompts"]),
        ("a", TEN, ["x"] * 4, ["documents: 4 ", "3 units", "memory.retrieval_units"]),
        ("a", TEN, ["x", ""], ["document-2", "empty"]),
        ("a", TEN, ["x", {"text": "y"}], ["documents: each must be a text or an ewe.Passage, got dict"]),
        ("a", TEN, [Passage("x", "y", title=None)], ["documents: 'x': title must be a string"]),  # type: ignore[arg-type]
        ("a", TEN, {"a": "x"}, ["documents: this must be a list", "dict"]),
        ("a", TEN, "one text", ["documents: this must be a list"]),
        ("a", SamplingParams(logit_bias={9999: 1.0}), None, ["logit_bias", "9999"]),
        ("a", SamplingParams(stop_token_ids=(9999,)), None, ["stop_token_ids", "9999"]),
    ],
)
def test_bad_requests_are_refused(llm: LLM, prompts: Any, params: Any, documents: Any, names: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        llm.generate(prompts, params, documents)
    for name in names:
        assert name in str(caught.value)
    assert not llm.client._waiting


@pytest.mark.parametrize("memory", ["ann", {"user": "ann"}])
def test_whose_memories_is_told_by_their_options(llm: LLM, memory: Any) -> None:
    with pytest.raises(InvalidRequestError, match=f"MemoryOptions, got {type(memory).__name__}"):
        llm.generate("a", TEN, memory=memory)


def test_a_stream_refuses_what_generate_does(llm: LLM) -> None:
    with pytest.raises(InvalidRequestError, match="got a mapping"):
        llm.stream({"prompt": "a"}, TEN)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="SamplingParams, or a list of them, got dict"):
        llm.stream("a", {"max_tokens": 3})  # type: ignore[arg-type]


def test_chat_without_a_template(llm: LLM) -> None:
    with pytest.raises(InvalidRequestError, match=r"'tiny' has no chat template: use generate"):
        llm.chat([{"role": "user", "content": "Who?"}])


def test_chat_applies_the_template_and_adds_no_second_bos(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}It"
    with tiny_llm() as llm:
        monkeypatch.setattr(llm.tokenizer, "chat_template", template)
        [result] = llm.chat([{"role": "user", "content": "Who?"}], TEN)
        assert result.prompt == "<s>user: Who? It"
        ids = llm.tokenizer(result.prompt, add_special_tokens=False)["input_ids"]
        assert ids.count(1) == 1
        assert result.stats.prompt_tokens == len(ids)
        assert result.token_ids == llm.generate(ids, TEN)[0].token_ids
        with pytest.raises(InvalidRequestError, match="messages is empty"):
            llm.chat([])


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"memory": {"retrieval_unit": 3}}, ["memory.retrieval_unit", "did you mean retrieval_units?"]),
        ({"memry": {}}, ["memry", "did you mean memory?"]),
        ({"memory": {"unit_tokens": 0}}, ["memory.unit_tokens"]),
        ({"feedback": {"mode": "sometimes"}}, ["feedback.mode"]),
        ({"policy": "magic"}, ["policy"]),
        ({"verifier": "builtin", "memory": {"verification_units": 0}}, ["memory.verification_units"]),
        ({"verifier": "oracle"}, ["verifier: unknown verifier 'oracle'", "claims, builtin, auto, none"]),
        ({"verifier": "builtin"}, ["datastore"]),
        ({"memory": {"unit_tokens": 64}, "scheduler": {"max_num_batched_tokens": 64}}, ["max_num_batched_tokens"]),
        ({"cache": {"memory_gib": 1e-9}}, ["cache.memory_gib"]),
    ],
)
def test_bad_settings_are_refused_by_name(config: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        LLM("tiny", config=config, loaded=loaded())
    for name in names:
        assert name in str(caught.value)


def test_a_verifier_without_units_is_refused_whether_named_or_given() -> None:
    with pytest.raises(ConfigError, match=r"memory\.verification_units"):
        tiny_llm({"memory": {"unit_tokens": 24, "verification_units": 0}}, verifier=Supporter())
    # Where nothing is verified it does no harm.
    with tiny_llm({"memory": {"unit_tokens": 24, "verification_units": 0}, "policy": "plain"}, verifier=Supporter()):
        pass


def test_things_that_are_no_components_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"the verifier must be one of claims, .* or have a verify"):
        tiny_llm(verifier=object())
    with pytest.raises(ConfigError, match="datastore must be"):
        tiny_llm(datastore=object())
    with pytest.raises(ConfigError, match="no tokenizer"):
        LLM("tiny", config={}, loaded=replace(loaded(), tokenizer=None), datastore=Nothing())


def test_a_document_longer_than_a_unit_is_cut_with_a_note(llm: LLM) -> None:
    long = Passage("long", "The sea is wide. " * 20)
    assert len(llm.unit_token_ids(long)) <= 24
    [result] = llm.generate("The river", TEN, documents=[long, "short"])
    cut = [event.data["was_cut"] for event in result.trace if event.kind == "refresh"]
    assert cut == [True, False]


def test_without_a_tokenizer_only_token_ids_work() -> None:
    with LLM("tiny", config={"cache": {"num_blocks": 50}}, loaded=replace(loaded(), tokenizer=None)) as llm:
        [result] = llm.generate([5, 6, 7], TEN)
        assert (result.text, len(result.token_ids)) == ("", 10)
        for call in (lambda: llm.generate("text", TEN), lambda: llm.unit_token_ids("text")):
            with pytest.raises(InvalidRequestError, match="no tokenizer"):
                call()
        with pytest.raises(InvalidRequestError, match="documents: they need a tokenizer"):
            llm.generate([5], TEN, documents=["a"])


def test_a_prompt_that_just_fits_is_served_up_to_the_end(llm: LLM) -> None:
    ids = [5] * (MAX_LEN - 3)
    [result] = llm.generate(ids, SamplingParams(max_tokens=50, ignore_eos=True))
    assert len(result.token_ids) == 3
    assert result.finish_reason == "length"
