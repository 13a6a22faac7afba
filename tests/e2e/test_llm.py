"""LLM over a tiny real model: results against transformers' own, many requests, streams, ends."""

from __future__ import annotations

import queue
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from e2e.llm_rig import greedy_reference, model, tiny_llm
from tolerances import LOGPROBS

from ewe import LLM, Passage, SamplingParams
from ewe.engine.request import Request
from ewe.errors import EngineDeadError, InvalidRequestError
from ewe.retrieval.datastore import Datastore

PROMPTS = ["The river", "She wrote a novel", "It flows past the sea, then"]
DOCUMENTS = ["The river was named in 1897.", "Sørland is by the sea.", "A café."]
TEN = SamplingParams(max_tokens=10, ignore_eos=True)


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with tiny_llm() as engine:
        yield engine


@pytest.fixture(autouse=True)
def nothing_is_lost(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "llm" in request.fixturenames:
        request.getfixturevalue("llm").check_integrity()


def test_without_memory_greedy_equals_transformers_generate(llm: LLM) -> None:
    results = llm.generate(PROMPTS, SamplingParams(max_tokens=20, ignore_eos=True))
    for prompt, result in zip(PROMPTS, results, strict=True):
        ids = llm.tokenizer(prompt)["input_ids"]
        output = model("eager").generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=20,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
        )
        expected = output.sequences[0, len(ids) :]
        assert result.token_ids == tuple(expected.tolist())
        scores = torch.cat(output.logits).log_softmax(-1).gather(1, expected[:, None]).flatten()
        assert result.logprobs == pytest.approx(scores.tolist(), abs=LOGPROBS)
        assert result.prompt == prompt


@pytest.mark.parametrize("mode", ["off", "linear"])
def test_under_documents_greedy_equals_eager_attention_with_an_explicit_mask(mode: str) -> None:
    config = {"memory": {"unit_tokens": 24, "retrieval_units": 3, "veracity_weighting": mode}}
    veracities = [1.0, 0.5, 0.25]
    passages = [Passage(f"d{i}", DOCUMENTS[i], veracity=veracities[i]) for i in range(3)]
    with tiny_llm(config) as llm:
        units = [llm.unit_token_ids(passage) for passage in passages]
        assert all(unit[0] == llm.tokenizer.bos_token_id for unit in units)
        results = llm.generate(PROMPTS, SamplingParams(max_tokens=12, ignore_eos=True), documents=passages)
        for prompt, result in zip(PROMPTS, results, strict=True):
            ids = llm.tokenizer(prompt)["input_ids"]
            weights = veracities if mode == "linear" else [1.0] * 3
            tokens, logprobs = greedy_reference(ids, units, weights, start=24, count=12)
            assert result.token_ids == tuple(tokens)
            assert result.logprobs == pytest.approx(logprobs, abs=LOGPROBS)
            assert result.sources.keys() == {"d0", "d1", "d2"}
        llm.check_integrity()


def test_documents_change_the_text(llm: LLM) -> None:
    [without], [with_them] = llm.generate("The river", TEN), llm.generate("The river", TEN, documents=DOCUMENTS)
    assert without.token_ids != with_them.token_ids
    assert list(with_them.sources) == ["document-1", "document-2", "document-3"]


def test_attention_shares_per_source_do_not_change_the_text(llm: LLM) -> None:
    config = {"memory": {"unit_tokens": 24, "retrieval_units": 3}, "attribution": True}
    [plain] = llm.generate("The river", TEN, documents=DOCUMENTS)
    with tiny_llm(config) as attributing:
        [result] = attributing.generate("The river", TEN, documents=DOCUMENTS)
        [without] = attributing.generate("The river", TEN)
    assert result.token_ids == plain.token_ids
    for sentence in result.sentences:
        assert sentence.attention.keys() == {"document-1", "document-2", "document-3"}
        assert all(share > 0 for share in sentence.attention.values())
        assert sum(sentence.attention.values()) < 1  # the rest went to the context
    assert [sentence.attention for sentence in plain.sentences] == [{}] * len(plain.sentences)
    assert [sentence.attention for sentence in without.sentences] == [{}] * len(without.sentences)


def test_a_trace_says_which_retriever_was_really_asked() -> None:
    passages = Datastore([Passage("a", "The bridge opened in 1932.")])
    with tiny_llm({"retrieval": {"retriever": "bm25"}}, datastore=passages) as own:
        [found] = own.generate("Who?", SamplingParams(max_tokens=2))
    assert "datastore Datastore (1 passage, BM25)" in found.trace[0].data["engine"]


def test_token_ids_as_prompts(llm: LLM) -> None:
    ids = [llm.tokenizer(prompt)["input_ids"] for prompt in PROMPTS]
    by_text = llm.generate(PROMPTS, TEN)
    assert [g.token_ids for g in llm.generate(ids, TEN)] == [g.token_ids for g in by_text]
    [one] = llm.generate(ids[1], TEN)  # a flat list of ids is one prompt
    assert one.token_ids == by_text[1].token_ids
    assert llm.generate([], TEN) == []


def test_a_spelled_out_bos_is_not_doubled(llm: LLM) -> None:
    ids = llm.tokenizer("<s>The river")["input_ids"]
    assert ids[:2] == [1, 1]
    assert list(llm.client.build(Request("<s>The river", TEN)).request.prompt_ids) == ids[1:]


def test_one_params_each_and_n_answers_in_order(llm: LLM) -> None:
    hot = SamplingParams(ignore_eos=True, temperature=1.0, seed=1)
    params = [replace(hot, max_tokens=length, n=n) for length, n in [(3, 1), (5, 3), (4, 2)]]
    results = llm.generate(PROMPTS, params)
    assert [(len(g.token_ids), g.index) for g in results] == [(3, 0), (5, 0), (5, 1), (5, 2), (4, 0), (4, 1)]
    assert [g.prompt for g in results] == [PROMPTS[0], *[PROMPTS[1]] * 3, *[PROMPTS[2]] * 2]
    assert results[1].token_ids != results[2].token_ids


def test_what_else_runs_does_not_change_a_text(llm: LLM) -> None:
    params = SamplingParams(max_tokens=15, ignore_eos=True, temperature=0.9, seed=11)
    [alone] = llm.generate(PROMPTS[0], params)
    together = llm.generate([PROMPTS[0], *PROMPTS * 3], params)
    assert together[0].token_ids == alone.token_ids == together[1].token_ids


def test_results_are_told_as_they_come(llm: LLM) -> None:
    told: list[tuple[int, int]] = []
    params = [SamplingParams(max_tokens=n, ignore_eos=True) for n in (12, 2, 6)]
    llm.generate(PROMPTS, params, on_result=lambda number, g: told.append((number, len(g.token_ids))))
    assert told == [(1, 2), (2, 6), (0, 12)]


def test_a_small_pool_gives_the_same_texts() -> None:
    params = SamplingParams(max_tokens=40, ignore_eos=True, temperature=0.8, seed=2)
    texts = {}
    memory = {"unit_tokens": 12, "retrieval_units": 2, "verification_units": 0}
    for num_blocks in (300, 34):
        with tiny_llm({"cache": {"num_blocks": num_blocks, "block_size": 4}, "memory": memory}) as llm:
            results = llm.generate(PROMPTS * 2, params, documents=DOCUMENTS[1:])
            texts[num_blocks] = [g.token_ids for g in results]
            swaps = llm.client.engine.core.scheduler.swapper.swaps
            llm.check_integrity()
    assert swaps > 0
    assert texts[34] == texts[300]


# --- streams


def test_a_stream_adds_up_to_the_text(llm: LLM) -> None:
    [expected] = llm.generate(PROMPTS[1], TEN)
    events = list(llm.stream(PROMPTS[1], TEN))
    assert "".join(event.data["text"] for event in events if event.kind == "text") == expected.text
    assert events[-1].kind == "finish"
    assert events[-1].generation.token_ids == expected.token_ids
    assert [event.generation for event in events[:-1]] == [None] * (len(events) - 1)


def test_leaving_a_stream_aborts_it(llm: LLM) -> None:
    stream = llm.stream(PROMPTS[0], SamplingParams(max_tokens=350, ignore_eos=True))
    assert next(stream).kind in ("draft", "text")
    stream.close()
    [after] = llm.generate(PROMPTS[0], TEN)  # the loop has seen the abort when it takes this one in
    assert len(after.token_ids) == 10
    assert not llm.client.engine.core.active.sequences
    assert not llm.client._waiting


def test_a_stream_that_is_never_read_costs_nothing(llm: LLM) -> None:
    llm.stream(PROMPTS[0], TEN)
    assert not llm.client._waiting
    with pytest.raises(InvalidRequestError, match="set n to 1"):
        llm.stream(PROMPTS[0], SamplingParams(n=2))
    with pytest.raises(InvalidRequestError, match="empty"):
        llm.stream("", TEN)


# --- the engine's end


def broken(core: Any) -> None:
    raise RuntimeError("broken on purpose")


def test_the_engines_death_is_told_to_whoever_waits() -> None:
    llm = tiny_llm()
    stream = llm.stream(PROMPTS[0], SamplingParams(max_tokens=350, ignore_eos=True))
    next(stream)
    llm.client._loop.do(broken)
    with pytest.raises(EngineDeadError, match="RuntimeError: broken on purpose"):
        list(stream)
    with pytest.raises(EngineDeadError, match="broken on purpose"):
        llm.generate(PROMPTS[0], TEN)
    llm.close()


def test_closing_gives_the_memory_back_though_the_object_is_kept() -> None:
    llm = tiny_llm()
    keys = weakref.ref(llm.client.engine.pool.keys[0])
    llm.generate(PROMPTS[0], TEN)
    llm.close()
    assert keys() is None


def test_closing_from_a_listener_aborts_what_runs() -> None:
    """The listener is called by the engine's own thread, in the middle of a step."""
    llm, ended = tiny_llm(), queue.SimpleQueue[Any]()
    params = SamplingParams(max_tokens=50, ignore_eos=True)
    llm.client.submit(llm.client.build(Request(PROMPTS[0], params, listener=lambda _: llm.close())), ended.put)
    answer = ended.get(timeout=60)
    assert (answer.finish_reason, answer.error) == ("abort", "")


def test_a_closed_engine_says_so() -> None:
    llm = tiny_llm()
    stream = llm.stream(PROMPTS[0], SamplingParams(max_tokens=350, ignore_eos=True))
    next(stream)
    llm.close()
    *_, last = stream
    assert last.generation.finish_reason == "abort"
    with pytest.raises(EngineDeadError, match="was closed"):
        llm.generate(PROMPTS[0], TEN)
    llm.close()


def test_requests_that_cannot_be_served_are_refused_alone_where_the_caller_hears_of_them(llm: LLM) -> None:
    requests = [Request(PROMPTS[0], TEN), Request(" ", TEN), Request(PROMPTS[1], TEN)]
    numbers: list[int] = []
    refused: dict[int, str] = {}
    answers = llm.client.run(
        requests, lambda number, _: numbers.append(number), lambda number, error: refused.update({number: str(error)})
    )
    assert [answer.prompt for answer in answers] == PROMPTS[:2]
    assert (sorted(numbers), list(refused)) == ([0, 2], [1])
    assert "this is empty" in refused[1]
    with pytest.raises(InvalidRequestError, match="this is empty"):
        llm.client.run(requests, None)
