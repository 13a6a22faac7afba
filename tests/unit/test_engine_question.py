"""What retrieval and verification are told of a prompt that holds more than its question."""

from __future__ import annotations

from typing import Any

import pytest
from engine_parts import Answers, Notebook, words
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.request import Request
from ewe.text.conversation import question_of, topic_of
from ewe.types.sampling_params import SamplingParams

TEMPLATED = "<|begin|>user: Who was it?<|end|>it:"
MEMORY = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}


def ask(policy: str, question: str, n: int = 1, topic: str = "") -> tuple[list[str], list[str], Any]:
    """The retriever's queries, the prompts that the verifier was told, and the first answer."""
    notebook, answers = Notebook(), Answers({})
    feedback = {"retrieve_every": 1, "verify_every": 1, "flare_min_prob": 1.0, "flare_mask_prob": 1.0}
    config = Config.from_mapping({"policy": policy, "memory": MEMORY, "feedback": feedback})
    bench = Bench(config, notebook, answers if policy == "ewe" else None, words("Aa bb. Cc."))
    params = SamplingParams(max_tokens=40, n=n)
    bench.core.active.add(
        bench.engine.input_processor.build("a", Request(TEMPLATED, params, question=question, topic=topic))
    )
    generation = bench.run()["a", 0]
    return notebook.queries, [request.prompt for request in answers.seen], generation


@pytest.mark.parametrize("policy", ["ewe", "flare"])
def test_the_question_stands_for_the_prompt(policy: str) -> None:
    queries, prompts, generation = ask(policy, "Who was it?", n=2)
    assert queries[0] == "Who was it?"
    assert len(queries) > 2
    assert not any("<|" in text for text in (*queries, *prompts))
    assert set(prompts) == ({"Who was it?"} if policy == "ewe" else set())
    assert generation.prompt == TEMPLATED
    assert generation.stats.prompt_tokens >= len(TEMPLATED)


@pytest.mark.parametrize("question", ["", " \n"])
def test_without_a_question_the_prompt_is_it(question: str) -> None:
    queries, prompts, _ = ask("ewe", question)
    assert queries[0] == TEMPLATED
    assert set(prompts) == {TEMPLATED}


def test_a_follow_up_is_looked_up_and_checked_under_its_topic() -> None:
    queries, prompts, generation = ask("ewe", "Tell me more about its lifts.", topic="the Eiffel Tower")
    assert queries[0] == "the Eiffel Tower\nits lifts"
    assert set(prompts) == {"the Eiffel Tower\nTell me more about its lifts."}
    assert generation.prompt == TEMPLATED


def test_memories_learn_from_what_the_user_says_without_its_topic() -> None:
    bench = Bench(Config.from_mapping({"policy": "ewe", "memory": MEMORY}), Notebook(), Answers({}), words("Aa."))
    asked = Request(TEMPLATED, question="I like it.", topic="the Eiffel Tower")
    for request, said in ((asked, "I like it."), (Request(TEMPLATED), TEMPLATED)):
        sequence = bench.engine.input_processor.build("a", request)
        assert sequence.request.user_text == said


def test_the_topic_of_a_conversation_is_what_the_user_follows_up_on() -> None:
    talk = [{"role": "user", "content": "Who was Ada Weston?"}, {"role": "assistant", "content": "An engineer."}]
    assert topic_of([*talk, {"role": "user", "content": "Where was she born?"}]) == "Who was Ada Weston?"
    assert topic_of([*talk, {"role": "user", "content": "Who was Marie Curie?"}]) == ""
    assert topic_of([]) == ""


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ([("system", "Be short."), ("user", "Who?"), ("assistant", "Ada."), ("user", "When?")], "When?"),
        ([("user", "Who?"), ("assistant", "It was")], "Who?"),
        ([("system", "Write.")], ""),
        ([], ""),
    ],
)
def test_the_question_of_a_conversation(said: list[tuple[str, str]], question: str) -> None:
    assert question_of([{"role": role, "content": content} for role, content in said]) == question


@pytest.mark.parametrize("policy", ["ewe", "rag"])
def test_small_talk_is_not_looked_up(policy: str) -> None:
    queries, _, _ = ask(policy, "Say hi")
    assert queries == []
