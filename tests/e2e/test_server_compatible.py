"""What users of vLLM and other servers of OpenAI's API send: names, lengths, echoes, tokens, probes, odd fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builtin_rig import CHAT, CONFIG, loaded_model, server
from server_rig import PROMPT, events_of, http, openai_client, serving

from ewe import LLM, SamplingParams
from ewe.config import resolve_config
from ewe.server.app import create_app
from ewe.server.engine_client.served_engine import LocalEngine
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai client is not installed")

MESSAGES: Any = CHAT["messages"]
LENGTH, UNIT = 2048, 96


@pytest.fixture(scope="module")
def served() -> Iterator[Any]:
    with server() as opened:
        yield opened


@pytest.fixture(scope="module")
def client(served: Any) -> Any:
    return openai_client(str(served.base_url))


def prompt_tokens(served: Any) -> int:
    return int(served.post("/tokenize", json={"messages": MESSAGES}).json()["count"])


# --- names


@pytest.mark.parametrize(
    ("given", "served_names", "listed", "also"),
    [
        ("someone/tiny", (), ["someone/tiny", "tiny"], []),
        ("FOLDER", (), ["tiny-chat"], ["FOLDER"]),
        ("someone/tiny", ("gpt-4o", "mine"), ["gpt-4o", "mine"], []),
    ],
)
def test_a_model_answers_to_its_names(
    tmp_path: Path, given: str, served_names: tuple[str, ...], listed: list[str], also: list[str]
) -> None:
    folder = tmp_path / "tiny-chat"
    folder.mkdir()
    name = str(folder) if given == "FOLDER" else given
    with LLM(config=resolve_config(name, CONFIG), loaded=loaded_model()) as llm:
        app = create_app(llm, ServerSettings(served_model_name=served_names))
        with serving(app) as url:
            client = openai_client(url)
            models = client.models.list().data
            assert [model.id for model in models] == listed
            assert str(tmp_path) not in repr(models)
            for asked in [*listed, *(str(folder) for _ in also)]:
                assert client.models.retrieve(asked).id == asked
                answer = client.chat.completions.create(model=asked, messages=MESSAGES, max_tokens=2)
                assert answer.model == asked
                chunks = client.completions.create(model=asked, prompt=PROMPT, max_tokens=2, stream=True)
                assert {chunk.model for chunk in chunks} == {asked}
                assert client.responses.create(model=asked, input=PROMPT, max_output_tokens=2).model == asked
            assert http.post(f"{url}/v1/completions", json={"prompt": PROMPT}).json()["model"] == listed[0]
            with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-3' here"):
                client.chat.completions.create(model="gpt-3", messages=MESSAGES)


# --- fields without effect


def test_fields_without_effect_are_named_in_a_header(client: Any, served: Any) -> None:
    plain = client.chat.completions.create(model="builtin", max_tokens=12, messages=MESSAGES)
    named = [{**MESSAGES[0], "mood": "glad"}]
    raw = client.chat.completions.with_raw_response.create(
        model="builtin", max_tokens=12, messages=named, verbosity="low", metadata={"a": "b"}, store=True,
        user="ada", service_tier="flex", extra_body={"nonsense": {"deep": 1}},
    )  # fmt: skip
    assert set(raw.headers["x-ewe-ignored"].split(", ")) == {
        *("verbosity", "metadata", "store", "user", "service_tier", "nonsense", "messages.mood")
    }
    assert raw.parse().choices[0].message.content == plain.choices[0].message.content
    stream = served.post("/v1/chat/completions", json={**CHAT, "stream": True, "nonsense": 1})
    assert stream.headers["x-ewe-ignored"] == "nonsense"
    assert events_of(stream.text)[-1] == "[DONE]"


def test_a_strict_server_refuses_what_it_does_not_know() -> None:
    with server(ServerSettings(strict=True, max_tokens=3)) as strict:
        refused = strict.post("/v1/chat/completions", json={**CHAT, "max_tokens": 2, "verbosity": "low"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "verbosity")
        nested = strict.post("/v1/chat/completions", json={"messages": [{**MESSAGES[0], "mood": "glad"}]})
        assert nested.json()["error"]["param"] == "messages.mood"
        label = strict.post("/v1/chat/completions", json={"messages": MESSAGES, "user": "ada"})
        assert (label.status_code, label.headers["x-ewe-ignored"]) == (200, "user")


# --- lengths


def test_without_max_tokens_an_answer_may_fill_the_context(client: Any, served: Any) -> None:
    left = LENGTH - UNIT - prompt_tokens(served)
    more = {"ignore_eos": True, "temperature": 1.0, "seed": 3}
    with pytest.MonkeyPatch.context() as patch:
        # The longest answer takes its time; what it may have is seen at the engine's door.
        seen: list[SamplingParams] = []
        build = served.llm.client.sequence
        patch.setattr(served.llm.client, "sequence", lambda *a, **k: seen.append(built := build(*a, **k)) or built)
        with client.chat.completions.create(
            model="builtin", messages=MESSAGES, extra_body=more, stream=True, temperature=1.0
        ) as stream:
            next(iter(stream))
        client.completions.create(model="builtin", prompt=PROMPT, extra_body={"ignore_eos": True})
    assert [sequence.request.max_tokens for sequence in seen] == [left, 16]


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("/v1/chat/completions", "max_tokens", {"messages": MESSAGES}),
        ("/v1/chat/completions", "max_completion_tokens", {"messages": MESSAGES}),
        ("/v1/responses", "max_output_tokens", {"input": PROMPT}),
        ("/v1/completions", "max_tokens", {"prompt": PROMPT}),
    ],
)
def test_more_than_there_is_room_for_is_refused_with_the_numbers(
    served: Any, path: str, field: str, body: dict[str, Any]
) -> None:
    text = {"prompt": PROMPT} if path == "/v1/completions" else {"messages": MESSAGES}
    count = served.post("/tokenize", json=text).json()["count"]
    left = LENGTH - UNIT - count
    error = served.post(path, json={**body, field: left + 1}).json()["error"]
    assert (error["param"], error["code"]) == (field, "context_length_exceeded")
    for part in (f"prompt's {count} tokens", f"{left + 1} more", f"{LENGTH} (model.max_model_len)", f"at most {left}"):
        assert part in error["message"]
    assert f"less the {UNIT} of a memory unit (memory.unit_tokens)" in error["message"]
    done = served.post(path, json={**body, field: left, "ewe": {"deadline_s": 1e-6}})
    assert done.status_code == 200


def test_a_pool_that_is_smaller_than_the_context_is_named() -> None:
    with server(assignments=["cache.num_blocks=80", "policy=plain", "datastore=null", "verifier=null"]) as client:
        error = client.post("/v1/chat/completions", json={"messages": MESSAGES, "max_tokens": 1800}).json()["error"]
        assert "the KV pool holds no more (cache.num_blocks, cache.memory_gib)" in error["message"]
        assert "memory unit" not in error["message"]


def test_the_servers_own_limit_holds_where_it_is_set() -> None:
    with server(ServerSettings(max_tokens=5)) as client:
        body = {"messages": MESSAGES, "ignore_eos": True}
        stats = client.post("/v1/chat/completions", json=body).json()["ewe"]["stats"]
        assert stats["tokens_kept"] <= 5
        error = client.post("/v1/chat/completions", json={**body, "max_tokens": 6}).json()["error"]
        assert (error["param"], "at most 5 here (server.max_tokens)" in error["message"]) == ("max_tokens", True)


# --- echo


def test_echo_repeats_the_prompt(client: Any, served: Any) -> None:
    asked: Any = {"model": "builtin", "max_tokens": 12}
    ids = served.llm.tokenizer("The bridge")["input_ids"]
    for prompt, text in (([PROMPT, "The bridge"], [PROMPT, "The bridge"]), ([ids], ["The bridge"])):
        bare = client.completions.create(prompt=prompt, **asked)
        answer = client.completions.create(prompt=prompt, echo=True, **asked)
        assert [choice.text for choice in answer.choices] == [
            given + choice.text for given, choice in zip(text, bare.choices, strict=True)
        ]
        spans = [
            (answer.choices[item["choice"]].text[item["start_index"] : item["end_index"]], item["verdict"])
            for item in answer.ewe["sentences"]
        ]
        assert spans == [
            (bare.choices[item["choice"]].text[item["start_index"] : item["end_index"]], item["verdict"])
            for item in bare.ewe["sentences"]
        ]
        streamed = [""] * len(prompt)
        for chunk in client.completions.create(prompt=prompt, echo=True, stream=True, **asked):
            for choice in chunk.choices:
                streamed[choice.index] += choice.text
        assert streamed == [choice.text for choice in answer.choices]


def test_echo_with_logprobs_scores_the_prompt_as_harnesses_expect(client: Any, served: Any) -> None:
    ids = served.llm.tokenizer("Nurim Nurner was born in 1900.")["input_ids"]
    [choice] = client.completions.create(
        model="builtin", prompt=[ids], max_tokens=1, logprobs=2, echo=True, temperature=0
    ).choices
    told = choice.logprobs
    assert len(told.tokens) == len(told.token_logprobs) == len(told.top_logprobs) == len(ids) + 1
    assert "".join(told.tokens) == choice.text
    assert (told.token_logprobs[0], told.top_logprobs[0]) == (None, None)
    [engine] = served.llm.generate([ids], SamplingParams(max_tokens=1, prompt_logprobs=2))
    assert told.token_logprobs[1:-1] == pytest.approx(list(engine.prompt_logprobs), abs=1e-5)
    for offset, token in zip(told.text_offset, told.tokens, strict=True):
        assert choice.text[offset : offset + len(token)] == token
    for top, value in zip(told.top_logprobs[1:], told.token_logprobs[1:], strict=True):
        assert max(top.values()) >= value - 1e-6
        assert list(top.values()) == sorted(top.values(), reverse=True)


def test_texts_are_scored_without_a_new_token(client: Any, served: Any) -> None:
    asked: Any = {"model": "builtin", "echo": True, "logprobs": 2, "temperature": 0}
    texts = [PROMPT, "The bridge"]
    ids = [served.llm.tokenizer(text)["input_ids"] for text in texts]
    one = client.completions.create(prompt=ids, max_tokens=1, **asked)
    for prompt in (ids, texts):
        none = client.completions.create(prompt=prompt, max_tokens=0, **asked)
        assert [(choice.text, choice.finish_reason) for choice in none.choices] == [(text, "length") for text in texts]
        assert (none.usage.completion_tokens, none.ewe["sentences"]) == (0, [])
        for scored, longer, given in zip(none.choices, one.choices, ids, strict=True):
            told, more = scored.logprobs, longer.logprobs
            assert len(told.tokens) == len(told.top_logprobs) == len(given) == len(more.tokens) - 1
            assert (told.tokens, told.text_offset) == (more.tokens[:-1], more.text_offset[:-1])
            assert told.token_logprobs[0] is None
            assert told.token_logprobs[1:] == pytest.approx(more.token_logprobs[1:-1], abs=1e-4)
    streamed = ["", ""]
    for chunk in client.completions.create(prompt=texts, max_tokens=0, echo=True, stream=True, model="builtin"):
        for choice in chunk.choices:
            streamed[choice.index] += choice.text
    assert streamed == texts


def test_no_token_and_no_echo_is_refused(served: Any) -> None:
    answer = served.post("/v1/completions", json={"prompt": PROMPT, "max_tokens": 0})
    assert (answer.status_code, "only of use with echo" in answer.text) == (400, True)


# --- tokens, probes, the page of the API


def test_tokens_are_those_that_the_engine_gets(client: Any, served: Any) -> None:
    told = served.post("/tokenize", json={"model": "builtin", "prompt": PROMPT, "return_token_strs": True}).json()
    assert told["tokens"] == served.llm.tokenizer(PROMPT)["input_ids"]
    assert (told["count"], told["max_model_len"]) == (len(told["tokens"]), LENGTH)
    assert told["token_strs"] == served.llm.tokenizer.convert_ids_to_tokens(told["tokens"])
    bare = served.post("/tokenize", json={"prompt": PROMPT, "add_special_tokens": False}).json()
    assert (bare["tokens"], bare["token_strs"]) == (told["tokens"][1:], None)
    back = served.post("/detokenize", json={"tokens": bare["tokens"]}).json()
    assert back == {"prompt": PROMPT}
    answer = client.chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=1)
    assert answer.ewe["stats"]["prompt_tokens"] == prompt_tokens(served)


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/tokenize", {}, "give either prompt or messages"),
        ("/tokenize", {"prompt": "a", "messages": MESSAGES}, "give either prompt or messages"),
        ("/tokenize", {"prompt": "a", "chat_template": "x"}, "not supported yet: chat_template"),
        ("/detokenize", {"tokens": [10**6]}, "is not a token id"),
        ("/detokenize", {"tokens": [-1]}, "is not a token id"),
        ("/detokenize", {"tokens": ["a"]}, "tokens.0"),
        ("/detokenize", {"tokens": [1], "model": "gpt"}, "there is no model"),
    ],
)
def test_what_has_no_tokens_is_refused(served: Any, path: str, body: dict[str, Any], told: str) -> None:
    answer = served.post(path, json=body)
    assert answer.status_code in (400, 404)
    assert told in answer.json()["error"]["message"]


def test_load_balancers_need_no_key() -> None:
    app = create_app(None, ServerSettings(api_key="secret"))
    with serving(app) as url:
        assert {http.get(f"{url}/ping").status_code, http.post(f"{url}/ping").status_code} == {503}
        with LLM(config=CONFIG, loaded=loaded_model()) as llm:
            app.state.service.open(LocalEngine(llm))
            assert {http.get(f"{url}/ping").status_code, http.post(f"{url}/ping").status_code} == {200}
            assert http.get(f"{url}/docs").status_code == 401


def test_the_page_of_the_api_tells_all_and_loads_nothing_from_elsewhere(served: Any) -> None:
    answer = served.get("/docs")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    described = served.get("/openapi.json").json()
    for path, operations in described["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in answer.text
    for name, schema in described["components"]["schemas"].items():
        assert f'id="{name}"' in answer.text
        for field in schema.get("properties", {}):
            assert f"<code>{field}</code>" in answer.text, (name, field)
    assert "<script" not in answer.text
    assert not re.search(r'(?:src|href)="(?:https?:)?//', answer.text)
    assert set(re.findall(r'href="#(\w+)"', answer.text)) <= described["components"]["schemas"].keys()
