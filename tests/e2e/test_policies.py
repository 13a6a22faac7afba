"""Policies that ask several times, through every door: Python, asyncio, the command line, the server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from builtin_rig import CONFIG, loaded_model, server
from llm_rig import MAX_LEN, model, tiny_llm
from server_rig import PROMPT, wait_until_idle
from typer.testing import CliRunner
from unit.engine_parts import Judge, Library
from unit.engine_tokenizers import sentencepiece_like

from ewe import LLM, AsyncLLM, SamplingParams
from ewe.cli.main import app
from ewe.engine.models.loader import LoadedModel
from ewe.engine.request import Request
from ewe.errors import InvalidRequestError
from ewe.evaluation.world.builtin import example_prompts
from ewe.policies.self_rag_like import TOKENS
from ewe.types import Generation, Passage, ScoredPassage

PARAMS = SamplingParams(max_tokens=8)
ENDLESS = SamplingParams(max_tokens=350, ignore_eos=True)
MESSAGES: Any = [{"role": "user", "content": PROMPT}]
ASKING = ("ra", "dragin", "cove", "cove+retrieval", "self-rag-like", "rewrite-after")
PIPELINE = {"passages": 2, "candidates": 2, "step_tokens": 6, "questions": 2}


def open_llm(policy: str, **components: Any) -> LLM:
    components = {"datastore": Library(), "verifier": Judge(), **components}
    return tiny_llm({"policy": policy, "pipeline": PIPELINE}, **components)


def kinds(generation: Generation) -> list[str]:
    return [event.kind for event in generation.trace]


@pytest.fixture(scope="module", params=ASKING)
def llm(request: pytest.FixtureRequest) -> Iterator[LLM]:
    with open_llm(request.param) as opened:
        yield opened
        wait_until_idle(opened)


def test_python_answers_alike_in_every_way(llm: LLM) -> None:
    [answer] = llm.generate(PROMPT, PARAMS)
    events = list(llm.stream(PROMPT, PARAMS))
    streamed = events[-1].generation
    assert streamed.text == answer.text == "".join(e.data["text"] for e in events if e.kind == "text")
    assert (streamed.token_ids, streamed.sentences) == (answer.token_ids, answer.sentences)
    assert {"asking", "finish"} <= set(kinds(answer))
    assert answer.stats.tokens_kept == len(answer.token_ids)
    assert answer.stats.passes > 0


def test_sixteen_at_once_are_sixteen_alone(llm: LLM) -> None:
    prompts = [f"Who is number {number}?" for number in range(16)]
    together = llm.generate(prompts, PARAMS)
    assert llm.generate(prompts[3], PARAMS)[0].text == together[3].text
    assert all(answer.finish_reason in ("stop", "length") for answer in together)


def test_rewrite_after_removes_what_the_verifier_refutes() -> None:
    with LLM(config=CONFIG.override(["policy=rewrite-after"]), loaded=loaded_model()) as llm:
        answers = llm.generate(list(example_prompts())[:3], SamplingParams(max_tokens=40))
    refuted = [s for answer in answers for s in answer.sentences if s.removed or s.verdict == "refuted"]
    assert refuted
    assert all(s.verdict != "refuted" for s in refuted if s.removed)


def test_ra_reads_passages_without_units() -> None:
    with open_llm("ra") as llm:
        [answer] = llm.generate(PROMPT, PARAMS)
    assert 1 <= len(answer.sources) <= 2
    assert answer.stats.refreshes == 0
    assert answer.stats.retrievals == 1


def test_tools_and_token_ids_are_refused() -> None:
    with open_llm("cove") as llm:
        tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
        with pytest.raises(InvalidRequestError, match="tools: policy cove"):
            llm.client.build(Request(PROMPT, PARAMS, tools=llm.tool_use(tools)))
        with pytest.raises(InvalidRequestError, match="policy cove needs the prompt as a text"):
            llm.generate([1, 2, 3], PARAMS)


def test_leaving_a_stream_or_a_task_aborts_all_that_was_asked() -> None:
    with open_llm("cove") as llm:
        for event in llm.stream(PROMPT, ENDLESS):
            assert event.kind == "asking"
            break
        wait_until_idle(llm)

        async def cancel() -> None:
            engine = AsyncLLM.__new__(AsyncLLM)
            engine.llm = llm
            task = asyncio.create_task(engine.generate(PROMPT, ENDLESS))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        wait_until_idle(llm)


def test_an_engine_that_is_closed_tells_who_waits() -> None:
    class Hanging:
        def __init__(self) -> None:
            self.gate, self.asked = threading.Event(), threading.Event()

        def retrieve(self, queries: Any, top_k: int) -> Any:
            self.asked.set()
            self.gate.wait(60)

    retriever, told = Hanging(), []
    llm = open_llm("ra", datastore=retriever)
    llm.client.submit(llm.client.build(Request(PROMPT, PARAMS)), told.append)
    assert retriever.asked.wait(60)
    llm.close()
    retriever.gate.set()
    aborted, error = told
    assert aborted.finish_reason == "abort"
    assert str(error) == "the engine was closed"


def test_the_command_line_knows_every_policy() -> None:
    arguments = [
        "generate",
        PROMPT,
        "--policy",
        "cove",
        "--max-tokens",
        "8",
        "--set",
        "pipeline.step_tokens=8",
        "--json",
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["text"].strip()
    assert result["stats"]["tokens_discarded"] > 0


def test_the_server_streams_an_answer_to_the_real_client() -> None:
    openai = pytest.importorskip("openai", reason="the openai client is not installed")
    with server(assignments=["policy=ra", "pipeline.passages=2"]) as client:
        [expected] = client.llm.chat(MESSAGES, PARAMS)
        with openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0) as api:
            body = {"model": "builtin", "messages": MESSAGES, "max_tokens": 8}
            answer = api.chat.completions.create(**body)
            chunks = list(api.chat.completions.create(**body, stream=True, extra_body={"ewe": {"events": True}}))
    assert answer.choices[0].message.content == expected.text
    assert answer.usage.prompt_tokens == expected.stats.prompt_tokens + expected.stats.unit_tokens
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == expected.text
    told = [chunk.ewe["event"] for chunk in chunks if "event" in (getattr(chunk, "ewe", None) or {})]
    assert {"retrieving", "retrieval", "asking"} <= set(told)


class Shelf:
    """Finds the same two passages for every query."""

    found = (Passage("a", "The river [Fully supported] flows.", title="River"), Passage("b", "To the sea."))

    def retrieve(self, queries: list[str], top_k: int) -> list[list[ScoredPassage]]:
        return [[ScoredPassage(passage, 1.0) for passage in self.found] for _ in queries]


def reflecting_model() -> tuple[Any, Any]:
    """A tokenizer with the reflection tokens and a model, with transformers' attention, that writes them often."""
    tokenizer = deepcopy(sentencepiece_like())
    tokenizer.add_special_tokens({"additional_special_tokens": list(TOKENS)})
    trained = deepcopy(model("eager", len(tokenizer)))
    trained.lm_head.weight[tokenizer.convert_tokens_to_ids(list(TOKENS))] *= 3
    trained.lm_head.weight[tokenizer.eos_token_id] = 0  # and does not stop
    return tokenizer, trained


def reflected(tokenizer: Any, trained: Any, prompt: str, num_tokens: int) -> tuple[list[float], float]:
    """Relevance, support and usefulness of what the model writes greedily, and its score (appendix A.3 of the paper).

    Each group's tokens count by their probabilities, normalised within the group: at the first place (relevance), or
    where the model first writes one of them; 0 where it writes none.
    """
    groups: list[tuple[float, dict[str, float]]] = [
        (1.0, {"[Relevant]": 1.0, "[Irrelevant]": 0.0}),
        (1.0, {"[Fully supported]": 1.0, "[Partially supported]": 0.5, "[No support / Contradictory]": 0.0}),
        (0.5, {"[Utility:1]": -1.0, "[Utility:2]": -0.5, "[Utility:3]": 0.0, "[Utility:4]": 0.5, "[Utility:5]": 1.0}),
    ]
    ids = tokenizer(prompt)["input_ids"]
    written: list[int] = []
    places: list[torch.Tensor] = []
    for _ in range(num_tokens):
        logits = trained(input_ids=torch.tensor([ids + written]), use_cache=False).logits[0, -1]
        places.append(logits.double().softmax(-1))
        written.append(int(logits.argmax()))
    chosen = torch.stack([place[token] for place, token in zip(places, written, strict=True)])
    values, score = [], float(chosen.log().mean().exp())
    for number, (weight, group) in enumerate(groups):
        worth = {tokenizer.convert_tokens_to_ids(name): value for name, value in group.items()}
        found = [0] if number == 0 else [at for at, token in enumerate(written) if token in worth]
        probs = {token: float(places[found[0]][token]) for token in worth} if found else {}
        values.append(sum(worth[token] * prob for token, prob in probs.items()) / (sum(probs.values()) or 1.0))
        score += weight * values[-1]
    return values, score


def test_a_folder_of_a_model_trained_to_reflect_is_scored_as_in_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, trained = reflecting_model()
    tokenizer.save_pretrained(tmp_path)
    trained.save_pretrained(tmp_path)
    monkeypatch.setattr("ewe.policies.self_rag_like._LIKELIEST", len(tokenizer))  # these weights are less sure
    settings = {**PIPELINE, "step_tokens": 16, "retrieve_prob": 0.0}
    config = {"policy": "self-rag-like", "pipeline": settings, "memory": {"unit_tokens": 60}, "verifier": "none"}
    with LLM(str(tmp_path), config=config, datastore=Shelf()) as llm:
        [answer] = llm.generate(PROMPT, SamplingParams(max_tokens=16))
    needed, chosen = [event.data for event in answer.trace if event.kind == "decision"][:2]
    [_, written, *_] = [event.data["texts"] for event in answer.trace if event.kind == "answered"]
    assert all(any(token in text for token in TOKENS) for text in written), "they tell where a segment ends"
    assert not any(token in answer.text for token in TOKENS)
    first = trained(input_ids=torch.tensor([tokenizer(PROMPT)["input_ids"]])).logits[0, -1].double()
    both = first[tokenizer.convert_tokens_to_ids(["[Retrieval]", "[No Retrieval]"])].softmax(-1)
    assert needed["probability"] == pytest.approx(float(both[0]), abs=1e-4)
    texts = ["River: The river [ Fully supported] flows.", "To the sea."]
    expected = [
        reflected(tokenizer, trained, f"{PROMPT}[Retrieval]<paragraph>{text}</paragraph>", 16) for text in texts
    ]
    assert chosen["critique"] == pytest.approx([value for values, _ in expected for value in values], abs=1e-4)
    assert chosen["scores"] == pytest.approx([score for _, score in expected], abs=1e-4)
    assert chosen["chosen"] == ("a" if expected[0][1] > expected[1][1] else "b")


def test_a_model_that_has_reflection_tokens_is_asked_with_them() -> None:
    """Its passages stand after the text, and what they spell are no tokens."""
    tokenizer = deepcopy(sentencepiece_like())
    tokenizer.add_special_tokens({"additional_special_tokens": list(TOKENS)})
    reads = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    trained = deepcopy(model("ewe", len(tokenizer)))
    wants = model("eager", len(tokenizer)).model(reads).last_hidden_state[0, -1]
    trained.lm_head.weight[tokenizer.convert_tokens_to_ids("[Retrieval]")] = wants
    loaded = LoadedModel(trained, tokenizer, MAX_LEN, frozenset({2}), len(tokenizer))
    config = {"policy": "self-rag-like", "pipeline": PIPELINE, "memory": {"unit_tokens": 60}, "verifier": "none"}
    with LLM("tiny", config=config, loaded=loaded, datastore=Shelf()) as llm:
        [answer] = llm.generate(PROMPT, SamplingParams(max_tokens=20, seed=1, temperature=1.0))
        frame = "[Retrieval]<paragraph>{passages}</paragraph>"
        asked = llm.client.engine.core.policies.effect_runner.side.prompts.prompts.own(
            PROMPT, Shelf.found[:1], "So.", frame
        )
    assert str(getattr(asked, "text", asked)) == f"{PROMPT}So.{frame}".format(
        passages="River: The river [ Fully supported] flows."
    )
    steps = [event.data for event in answer.trace if event.kind == "asking"]
    assert {step["step"] for step in steps} == {"retrieve?", "sentence"}
    assert [["a"], ["b"]] in [step["passages"] for step in steps]
    assert not any(token in answer.text for token in TOKENS)
