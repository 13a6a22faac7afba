"""The contract with the real openai client: every case as it comes, with strict validation, and through .stream()."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from server_rig import PROMPT, openai_client, serving, wait_until_idle

from ewe import LLM, SamplingParams
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai client is not installed")

LENGTH = 26
MESSAGES: Any = [{"role": "user", "content": PROMPT}]
# The answer to this one soon ends.
QUESTION: Any = [{"role": "user", "content": "Where did Nurim Nurner study?"}]
SAMPLED: Any = {"temperature": 0.9, "seed": 5, "max_tokens": 10}


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM(model="builtin") as opened:
        yield opened


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    settings = ServerSettings(max_n=4, max_tokens=200, max_prompt_tokens=500, ping=0.05)
    with serving(create_app(llm, settings)) as address:
        yield address


@pytest.fixture(params=["lax", "strict"])
def client(request: pytest.FixtureRequest, url: str) -> Any:
    return openai_client(url, request.param == "strict")


@pytest.fixture(autouse=True)
def nothing_is_left(llm: LLM) -> Iterator[None]:
    yield
    wait_until_idle(llm)


@pytest.fixture(scope="module")
def expected(llm: LLM) -> Any:
    """What the engine writes without a server."""
    [generation] = llm.chat(MESSAGES, SamplingParams(max_tokens=LENGTH))
    return generation


def test_a_chat_answer_is_the_engines(client: Any, expected: Any) -> None:
    answer = client.chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=LENGTH)
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == (expected.text, "length")
    kept, discarded = expected.stats.tokens_kept, expected.stats.tokens_discarded
    assert answer.usage.prompt_tokens == expected.stats.prompt_tokens + expected.stats.unit_tokens
    assert answer.usage.completion_tokens == kept + discarded
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + kept + discarded
    assert answer.usage.completion_tokens_details.rejected_prediction_tokens == discarded
    assert answer.system_fingerprint.startswith("ewe-")


def test_citations_and_verdicts_are_those_of_the_sentences(client: Any, expected: Any) -> None:
    answer = client.chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=LENGTH)
    text, told = answer.choices[0].message.content, answer.ewe
    assert [text[item["start_index"] : item["end_index"]] for item in told["sentences"]] == [
        sentence.text for sentence in expected.sentences
    ]
    assert [item["verdict"] for item in told["sentences"]] == [s.verdict.value for s in expected.sentences]
    sources = {source["id"]: source for source in told["sources"]}
    cited = {(item.url_citation.start_index, item.url_citation.url) for item in answer.choices[0].message.annotations}
    assert cited == {
        (item["start_index"], f"ewe:{name}")
        for item in told["sentences"]
        for claim in item["claims"]
        if claim["verdict"] == "supported"
        for name in claim["source_ids"]
    }
    assert cited
    assert {url.removeprefix("ewe:") for _, url in cited} <= sources.keys()
    assert all(sources[name]["text"] for name in sources)
    removed = [wording for sentence in expected.sentences for wording in sentence.removed]
    assert [item["removed"] for item in told["revisions"] if item["sentence"] is not None] == removed
    claims = [claim["verdict"] for item in told["sentences"] for claim in item["claims"]]
    assert told["support_score"] == pytest.approx(claims.count("supported") / len(claims))
    assert told["stats"]["tokens_kept"] == expected.stats.tokens_kept
    assert told["finish_reasons"] == ["length"]


def streamed(client: Any, events: bool, usage_so_far: bool, **more: Any) -> list[Any]:
    """The chunks of an answer, with token counts at the end at least."""
    return list(
        client.chat.completions.create(
            model="builtin",
            messages=MESSAGES,
            max_tokens=LENGTH,
            stream=True,
            stream_options={"include_usage": True, "continuous_usage_stats": usage_so_far},
            extra_body={"ewe": {"events": events}},
            **more,
        )
    )


@pytest.mark.parametrize("events", [False, True])
def test_a_stream_adds_up_to_the_answer(client: Any, expected: Any, events: bool) -> None:
    chunks = streamed(client, events, usage_so_far=False)
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == expected.text
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["length"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    live = [chunk.ewe for chunk in chunks if "event" in (chunk.model_extra or {}).get("ewe", {})]
    assert bool(live) == events
    if events:
        drafts: dict[int, str] = {}
        for item in live:
            if item["event"] == "draft":
                drafts[item["data"]["start"]] = item["data"]["text"]
        assert drafts[0].startswith(expected.text[:3])
        assert {item["event"] for item in live} >= {"draft", "sentence", "retrieval", "verification", "refresh"}
    [last] = [chunk for chunk in chunks if "sentences" in (chunk.model_extra or {}).get("ewe", {})]
    assert len(last.ewe["sentences"]) == len(expected.sentences)
    cited = [choice.delta.annotations for choice in choices if (choice.delta.model_extra or {}).get("annotations")]
    assert len(cited) == 1, "all citations come together"
    assert all(chunk.choices for chunk in chunks[:-1]) == (not events), "bare clients find a choice in every chunk"


@pytest.mark.parametrize("events", [False, True])
def test_every_chunk_says_the_counts_of_then(client: Any, expected: Any, events: bool) -> None:
    chunks = streamed(client, events, usage_so_far=True, n=2)
    counts = [chunk.usage.completion_tokens for chunk in chunks]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert len(set(counts)) > 2, "they grow with the text"
    *_, last, whole = chunks
    assert last.usage == whole.usage
    assert not whole.choices
    stats = expected.stats
    assert whole.usage.completion_tokens == 2 * (stats.tokens_kept + stats.tokens_discarded)
    assert whole.usage.completion_tokens_details.rejected_prediction_tokens == 2 * stats.tokens_discarded
    assert chunks[0].usage.prompt_tokens == stats.prompt_tokens
    assert whole.usage.prompt_tokens >= stats.prompt_tokens + stats.unit_tokens  # the second answer reads more
    texts = ["", ""]
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        texts[choice.index] += choice.delta.content or ""
    assert texts == [expected.text] * 2


@pytest.fixture(scope="module")
def whole(llm: LLM) -> Any:
    """The same to its end: the streaming helper takes another end for an error."""
    [generation] = llm.chat(QUESTION, SamplingParams(max_tokens=200))
    assert generation.finish_reason == "stop"
    return generation


def test_the_stream_helper(client: Any, whole: Any) -> None:
    with client.chat.completions.stream(
        model="builtin", messages=QUESTION, extra_body={"ewe": {"events": True}}, logprobs=True
    ) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert "".join(deltas) == final.choices[0].message.content == whole.text
    assert "".join(item.token for item in final.choices[0].logprobs.content) == whole.text
    assert final.choices[0].message.annotations


def test_log_probabilities_are_the_engines(client: Any, expected: Any) -> None:
    answer = client.chat.completions.create(
        model="builtin", messages=MESSAGES, max_tokens=LENGTH, logprobs=True, top_logprobs=3
    )
    content = answer.choices[0].logprobs.content
    assert "".join(item.token for item in content) == expected.text
    assert [item.logprob for item in content] == pytest.approx(list(expected.logprobs), abs=1e-5)
    assert all(len(item.top_logprobs) == 3 for item in content)
    assert all(bytes(item.bytes).decode() == item.token for item in content)
    assert all(item.top_logprobs[0].logprob >= item.top_logprobs[-1].logprob for item in content)


def test_several_answers_with_a_seed(client: Any, llm: LLM) -> None:
    wanted = llm.chat(MESSAGES, SamplingParams(**SAMPLED, n=3))
    answer = client.chat.completions.create(model="builtin", messages=MESSAGES, n=3, **SAMPLED)
    assert [choice.message.content for choice in answer.choices] == [item.text for item in wanted]
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert {sentence["choice"] for sentence in answer.ewe["sentences"]} == {0, 1, 2}
    texts = ["", "", ""]
    ends = []
    for chunk in client.chat.completions.create(model="builtin", messages=MESSAGES, n=3, stream=True, **SAMPLED):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            ends += [choice.index] * (choice.finish_reason is not None)
    assert texts == [item.text for item in wanted]
    assert sorted(ends) == [0, 1, 2]


def test_text_completions(client: Any, llm: LLM) -> None:
    prompts = [PROMPT, "The bridge"]
    wanted = llm.generate(prompts, SamplingParams(**SAMPLED, n=2, logprobs=2))
    answer = client.completions.create(model="builtin", prompt=prompts, n=2, logprobs=2, **SAMPLED)
    assert [choice.text for choice in answer.choices] == [item.text for item in wanted]
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    prompts_and_units = wanted[0].stats.prompt_tokens + wanted[2].stats.prompt_tokens
    prompts_and_units += sum(item.stats.unit_tokens for item in wanted)
    assert answer.usage.prompt_tokens == prompts_and_units
    for choice, item in zip(answer.choices, wanted, strict=True):
        assert choice.logprobs.token_logprobs == pytest.approx(list(item.logprobs), abs=1e-5)
        assert "".join(choice.logprobs.tokens).startswith(choice.text)
        for offset, token in zip(choice.logprobs.text_offset, choice.logprobs.tokens, strict=True):
            assert choice.text[offset : offset + len(token)] == token[: len(choice.text) - offset]
    if client._strict_response_validation:
        return  # its model of a streamed text knows no finish_reason of null, which OpenAI's own chunks have
    texts = [""] * 4
    for chunk in client.completions.create(model="builtin", prompt=prompts, n=2, stream=True, **SAMPLED):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [item.text for item in wanted]


def test_token_ids_are_a_prompt(client: Any, llm: LLM) -> None:
    ids = llm.tokenizer(PROMPT)["input_ids"]
    answer = client.completions.create(model="builtin", prompt=ids, max_tokens=10)
    assert answer.choices[0].text == llm.generate([ids], SamplingParams(max_tokens=10))[0].text
    default = client.completions.create(model="builtin", prompt=PROMPT, extra_body={"ignore_eos": True})
    assert default.usage.completion_tokens - default.ewe["stats"]["tokens_discarded"] == 16


def test_stop_strings_and_biases(client: Any, expected: Any) -> None:
    stop = expected.sentences[0].text.split()[3]
    answer = client.chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=LENGTH, stop=stop)
    assert answer.choices[0].message.content == expected.text[: expected.text.index(stop)]
    assert answer.choices[0].finish_reason == "stop"
    banned = expected.token_ids[0]
    answer = client.chat.completions.create(
        model="builtin", messages=MESSAGES, max_tokens=10, logit_bias={str(banned): -100}, logprobs=True
    )
    assert answer.choices[0].logprobs.content[0].logprob < max(expected.logprobs[0], math.log(0.9))


def test_documents_fill_the_memory(client: Any) -> None:
    answer = client.chat.completions.create(
        model="builtin",
        messages=MESSAGES,
        max_tokens=10,
        extra_body={"documents": [{"title": "Paper", "text": "A text.", "url": "https://a.example", "veracity": 0.5}]},
    )
    [source] = [item for item in answer.ewe["sources"] if item["title"] == "Paper"]
    assert (source["url"], source["veracity"], source["score"]) == ("https://a.example", 0.5, None)


def test_units_count_as_tokens_of_the_prompt(client: Any) -> None:
    def counts(text: str) -> tuple[int, int]:
        more: Any = {"documents": [text], "cache_salt": text, "ewe": {"closed_world": None}}
        answer = client.chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=1, extra_body=more)
        return answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens

    text = f"A text of {id(client)} that nobody has read before."
    first, again, longer = counts(text), counts(text), counts(f"{text} Nor this.")
    assert first[1] == longer[1] == 0
    assert again == (first[0], again[1])
    assert 10 < again[1] < first[0] < longer[0]


def test_an_answer_can_be_sent_back(client: Any) -> None:
    answer = client.chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=20)
    parts = [{"type": "text", "text": "And then?"}]
    more = [*MESSAGES, answer.choices[0].message, {"role": "user", "content": parts}]
    first, *_ = client.chat.completions.create(model="builtin", messages=more, max_tokens=5, stream=True)
    assert first.choices[0].delta.model_dump(exclude_unset=True) == {
        "role": "assistant",
        "content": "",
        "refusal": None,
    }


def test_models(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["builtin"]
    assert client.models.retrieve("builtin").object == "model"
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt'"):
        client.models.retrieve("gpt")


def test_errors_are_the_clients_own(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="builtin", messages=[{"role": "user", "content": "word " * 600}])
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-4", messages=MESSAGES)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    for field, fault in (
        ("prompt", {"prompt": " "}),
        ("prompt", {"prompt": [10**6]}),
        ("documents", {"documents": [" "]}),
    ):
        with pytest.raises(openai.BadRequestError, match=f"{field}: ") as refused:
            client.completions.create(model="builtin", **{"prompt": "Who?", "extra_body": fault})
        assert refused.value.param == field


def test_langchain(url: str, expected: Any) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    model = langchain.ChatOpenAI(
        base_url=f"{url}/v1", api_key="none", model="builtin", max_tokens=LENGTH, max_retries=0
    )
    assert model.invoke(PROMPT).content == expected.text
    assert "".join(str(chunk.content) for chunk in model.stream(PROMPT)) == expected.text
