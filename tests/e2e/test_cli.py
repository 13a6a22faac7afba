"""The command line against a recorded engine: what is printed, what is written, and how errors look."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
from llm_rig import tiny_llm
from show_fixture import PROMPT, FakeLLM, StreamEvent, generation
from typer.testing import CliRunner, Result

from ewe import LLM, Passage
from ewe.cli.demo import REAL_PROMPTS
from ewe.cli.generate import generate
from ewe.cli.main import app
from ewe.cli.options import sampling_params
from ewe.config import Config
from ewe.errors import ConfigError
from ewe.retrieval.datastore import Datastore
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> FakeLLM:
    fake = FakeLLM()
    use(monkeypatch, fake)
    return fake


def use(monkeypatch: pytest.MonkeyPatch, fake: FakeLLM) -> None:
    for command in ("generate", "demo"):
        monkeypatch.setattr(f"ewe.cli.{command}.open_llm", lambda config, loaded=None: fake)
        monkeypatch.setattr(f"ewe.cli.{command}.settings_of", lambda *args, **named: Config())
    monkeypatch.setattr("ewe.evaluation.world.builtin.example_prompts", lambda: [PROMPT, "Where was Edda Roon born?"])


def ewe(*arguments: str, stdin: str | None = None, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(app, list(arguments), input=stdin)


def test_generate_offers_every_sampling_parameter_with_its_default() -> None:
    offered = inspect.signature(generate).parameters
    for item in fields(SamplingParams):
        if item.name == "prompt_logprobs":
            continue  # for harnesses, which go through the server's echo
        default = item.default if item.default is not MISSING else None
        assert item.name in offered, item.name
        assert offered[item.name].default == (default or None if default in ((), None) else default), item.name


def test_demo_shows_the_withdrawn_sentence_its_evidence_and_the_new_one_in_this_order(llm: FakeLLM) -> None:
    result = ewe("demo")
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.output.splitlines()]
    places = [
        lines.index("✗ She won the Larch Prize in 1961."),
        lines.index("↳ Larch Prize (Prize register): “1961 Ivo Sandt, 1963 Mirela Hask”"),
        lines.index("✓ She won the Larch Prize in 1963.  (rewritten)"),
    ]
    assert places == sorted(places)
    assert lines[0] == PROMPT
    assert "? Edda Roon was her pupil – “a fine one” 🌊." in lines
    assert "– She lives in Orvane & writes <b>no more</b>." in lines
    assert llm.calls[-1] == "closed"


def test_demo_ends_with_the_numbers_of_the_run(llm: FakeLLM) -> None:
    output = ewe("demo").output
    stats = generation().stats
    numbers = {key.strip(): value for key, value in re.findall(r"^ ?([a-z ]+?)  +(\S.*?) *$", output, re.M)}
    assert numbers["sentences"] == "6 (4 supported, 1 inconclusive, 1 not checked)"
    assert numbers["rewrites"] == "2"
    assert numbers["memory refreshes"] == f"{stats.refreshes} ({stats.unit_tokens_encoded} tokens encoded)"
    assert numbers["tokens"] == f"{stats.tokens_kept} kept, {stats.tokens_discarded} discarded"
    assert numbers["decode"] == f"{stats.decode_s:.2f} s"
    assert numbers["retrieval"] == f"{stats.retrieval_wait_s:.2f} s waited, {stats.retrievals} times"
    assert numbers["verification"] == f"{stats.verification_wait_s:.2f} s waited, {stats.verifications} times"


def test_demo_seed_picks_the_prompt_and_reaches_the_sampler(llm: FakeLLM) -> None:
    ewe("demo", "--seed", "1", "--max-tokens", "9")
    [(prompt, params, _), _] = llm.calls
    assert (prompt, params.seed, params.max_tokens) == ("Where was Edda Roon born?", 1, 9)
    ewe("demo", "--prompt", "Own words", "--seed", "5")
    assert llm.calls[2][0] == "Own words"


def test_demo_writes_json_html_and_trace(llm: FakeLLM, tmp_path: Path) -> None:
    page, trace = tmp_path / "a.html", tmp_path / "a.jsonl"
    result = ewe("demo", "--json", "--html", str(page), "--trace", str(trace))
    data = json.loads(result.output)
    assert data["text"] == generation().text
    assert data["sentences"][2]["removed"] == ["She won the Larch Prize in 1961."]
    assert "<!doctype html>" in page.read_text(encoding="utf-8")
    events = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert [event["kind"] for event in events] == [event.kind for event in generation().trace]
    assert {"id", "index", "kind", "time_s", "num_tokens", "data"} == set(events[0])


def test_a_real_demo_is_first_without_memory_then_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def settings_of(*given: Any, datastore: str) -> Config:
        asked.append((*given, datastore))
        return Config()

    monkeypatch.setattr("ewe.cli.demo.settings_of", settings_of)
    passages = Datastore([Passage("p", "The Huguenots fled to England.", "Huguenot")])

    def open_llm(config: Config, loaded: Any = None) -> LLM:
        return tiny_llm({"policy": config.policy, "retrieval": {"retriever": "bm25"}}, datastore=loaded and passages)

    monkeypatch.setattr("ewe.cli.demo.open_llm", open_llm)
    documents = [json.loads(line) for line in ewe("demo", "--real", "--json", "--max-tokens", "6").stdout.splitlines()]
    settings = ["model.adapter=memory-reader", "feedback.closed_world=true", "feedback.on_exhausted=drop"]
    assert asked == [("smollm2", None, settings, "wikipedia-sample")]
    assert [document["trace"][0]["data"]["policy"] for document in documents] == ["plain", "ewe"]
    assert [len(document["sources"]) for document in documents] == [0, 1]
    assert {document["prompt"] for document in documents} == {REAL_PROMPTS[0]}
    lines = ewe("demo", "--real", "--max-tokens", "6").stdout.splitlines()
    assert lines[0] == REAL_PROMPTS[0]
    assert lines.index("Without memory:") < lines.index("With memory; what no paragraph supports is taken back:")


def test_a_failed_stream_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = generation()
    object.__setattr__(failed, "finish_reason", "error")
    object.__setattr__(failed, "error", "NaN in the logits")
    use(monkeypatch, FakeLLM(events=[StreamEvent("finish", {"reason": "error"}, failed)]))
    result = ewe("demo")
    assert (result.exit_code, result.stderr) == (2, "ewe: NaN in the logits\n")


def test_one_prompt_prints_exactly_its_text(llm: FakeLLM) -> None:
    result = ewe("generate", PROMPT)
    assert result.exit_code == 0, result.output
    assert result.stdout == generation().text + "\n"


def test_sampling_options_reach_the_engine(llm: FakeLLM) -> None:
    ewe("generate", "p", "--temperature", "0.5", "--stop", "a", "--stop", "b", "--stop-token-ids", "7",
        "--logit-bias", "3=-1.5", "--ignore-eos", "--top-k", "4")  # fmt: skip
    params = llm.calls[0][1]
    expected = SamplingParams(
        temperature=0.5, stop=("a", "b"), stop_token_ids=(7,), logit_bias={3: -1.5}, ignore_eos=True, top_k=4
    )
    assert params == expected


def test_prompts_come_from_lines_jsonl_or_standard_input(llm: FakeLLM, tmp_path: Path) -> None:
    lines, objects = tmp_path / "p.txt", tmp_path / "p.jsonl"
    lines.write_text("one\n\ntwo\r\n", encoding="utf-8")
    objects.write_text('{"prompt": "one", "id": "x"}\n{"prompt": "two"}\n', encoding="utf-8")
    texts = json_lines(ewe("generate", "--prompts", str(lines), "--json"))
    named = json_lines(ewe("generate", "--prompts", str(objects), "--json"))
    piped = json_lines(ewe("generate", "--json", stdin="one\ntwo\n"))
    assert [(item["id"], item["prompt"]) for item in texts] == [("0", "one"), ("1", "two")]
    assert [(item["id"], item["prompt"]) for item in named] == [("x", "one"), ("1", "two")]
    assert piped == texts
    assert "trace" not in texts[0]


def json_lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_several_answers_come_in_order_each_under_its_prompt(llm: FakeLLM) -> None:
    result = ewe("generate", "-n", "2", stdin="one\ntwo\nthree\n")
    heads = [line for line in result.stdout.splitlines() if line.startswith("> ")]
    assert heads == ["> one", "> one", "> two", "> two", "> three", "> three"]
    indices = [item["index"] for item in json_lines(ewe("generate", "-n", "2", "--json", stdin="one\ntwo\n"))]
    assert indices == [0, 1, 0, 1]


def test_a_prompt_that_cannot_be_served_fails_alone(llm: FakeLLM) -> None:
    result = ewe("generate", "--json", stdin="one\ntoo long\nthree\nfail\nfive\n")
    assert result.exit_code == 1
    found = [
        (item["prompt"], item["finish_reason"], item["error"]) for item in map(json.loads, result.stdout.splitlines())
    ]
    assert found == [
        ("one", "stop", ""),
        ("too long", "error", "the prompt is too long"),
        ("three", "stop", ""),
        ("fail", "error", "NaN in the logits"),
        ("five", "stop", ""),
    ]
    assert "ewe: 2 of 5 prompts failed" in result.stderr


def test_the_only_prompt_that_cannot_be_served_is_an_error(llm: FakeLLM) -> None:
    result = ewe("generate", "--json", "too long")
    assert (result.exit_code, result.stderr, result.stdout) == (2, "ewe: the prompt is too long\n", "")


def test_documents_are_files_of_text_or_passages(llm: FakeLLM, tmp_path: Path) -> None:
    text, passages = tmp_path / "note.txt", tmp_path / "more.jsonl"
    text.write_text("A note.\n", encoding="utf-8")
    passages.write_text('{"id": "a", "text": "A passage.", "title": "T", "veracity": 0.5}\n', encoding="utf-8")
    assert ewe("generate", "p", "--documents", str(text), "--documents", str(passages)).exit_code == 0
    note, passage = llm.calls[0][2]
    assert (note.title, note.text) == ("note", "A note.")
    assert (passage.id, passage.text, passage.veracity) == ("a", "A passage.", 0.5)


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["generate", "p", "--temperature", "-1"], None, "temperature must be 0 or more"),
        (["generate"], "\n \n", "standard input holds no prompt"),
        (["generate"], '{"prompt": 3}\n', 'standard input:1: expected an object with a text under "prompt"'),
        (["generate"], '{"prompt": "a"}\nnonsense\n', "standard input:2: not valid JSON"),
        (["generate"], '{"prompt": "a", "id": 1}\n{"prompt": "b", "id": 1}', "the id '1' stands for two prompts"),
        (["generate", "p", "--prompts", __file__], None, "not both"),
    ],
)
def test_errors_are_one_line(llm: FakeLLM, arguments: list[str], stdin: str | None, message: str) -> None:
    result = ewe(*arguments, stdin=stdin)
    assert result.exit_code == 2
    assert result.stderr.startswith("ewe: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--html", "--trace", "--output"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(llm: FakeLLM, tmp_path: Path, option: str) -> None:
    result = ewe("generate", "p", option, str(tmp_path / "missing" / "file"))
    assert result.exit_code == 2
    assert "does not exist" in re.sub(r"[\s│]+", " ", result.stderr)
    assert llm.calls == []


def test_a_full_disk_is_one_line(llm: FakeLLM) -> None:
    result = ewe("generate", "p", "--html", "/dev/full")
    assert (result.exit_code, result.stderr) == (2, "ewe: [Errno 28] No space left on device\n")


def test_debug_shows_the_traceback(llm: FakeLLM) -> None:
    assert ewe("--debug", "generate", "p", "--temperature", "-1").exception.__class__.__name__ == "InvalidRequestError"
    quiet = ewe("generate", "p", "--temperature", "-1", EWE_DEBUG="1")
    assert quiet.exception.__class__.__name__ == "InvalidRequestError"


@pytest.mark.parametrize("command", ["generate", "chat", "serve"])
def test_a_policy_reaches_the_settings_and_others_are_refused(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    found: list[Config] = []

    def stop(config: Config) -> Any:
        found.append(config)
        raise ConfigError("stopped here")

    monkeypatch.setattr("ewe.cli.generate.open_llm", stop)
    monkeypatch.setattr("ewe.server.process.serve", lambda settings, load, notes: load(print))
    monkeypatch.setattr("ewe.llm.LLM", lambda config, on_load: stop(config))
    for chosen, expected in (
        (["--policy", "rag"], "rag"),
        ([], "ewe"),
        (["--policy", "rag", "--set", "policy=plain"], "plain"),
    ):
        assert ewe(command, *(["p"] if command == "generate" else []), *chosen).exit_code == 2
        assert found[-1].policy == expected
    result = ewe(command, *(["p"] if command == "generate" else []), "--policy", "psychic")
    assert result.exit_code == 2
    assert "policy: unknown policy 'psychic'; known: ewe, rag, flare, plain" in result.stderr
    assert len(found) == 3


def test_validate_names_every_problem(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("memory: {retrieval_units: 2}\n", encoding="utf-8")
    bad.write_text("memory: {retrieval_unit: 3, unit_tokens: -4}\npolicy: psychic\n", encoding="utf-8")
    assert ewe("validate", str(good)).output == f"{good}: ok\n"
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"policy: \xe9\n")
    result = ewe("validate", str(good), str(bad), str(tmp_path / "none.yaml"), str(latin))
    assert result.exit_code == 1
    problems = [line.strip() for line in result.output.splitlines() if line.startswith("  ")]
    assert [problem.split(":")[0].split(";")[0] for problem in problems] == [
        "memory.unit_tokens",
        "unknown setting memory.retrieval_unit",
        "policy",
        "cannot read the configuration " + str(tmp_path / "none.yaml"),
        f"{latin} is not valid YAML",
    ]


def test_collect_env_says_what_is_installed() -> None:
    facts = json.loads(ewe("collect-env", "--json").output)
    import torch

    assert facts["torch"] == torch.__version__
    assert set(facts) >= {"python", "ewe", "transformers", "triton", "faiss", "cpu", "cpus", "ram_gib", "gpus"}
    assert facts["ram_gib"] > 0
    text = ewe("collect-env").output
    assert re.search(rf"^torch +{re.escape(torch.__version__)}$", text, re.M)


def test_every_verdict_has_a_sign_of_its_own() -> None:
    from ewe.cli.terminal import MARKS

    assert set(MARKS) == set(Verdict)
    assert len({sign for sign, _ in MARKS.values()}) == len(Verdict)


def test_a_schema_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object"}')
    assert sampling_params({"json_schema": path}).json_schema == {"type": "object"}
    for wrong, reason in (("[1", "is no JSON"), ("[1]", "holds no JSON object")):
        path.write_text(wrong)
        result = ewe("generate", "x", "--json-schema", str(path))
        assert result.exit_code == 2
        assert reason in re.sub(r"[\s│]+", " ", result.output)
