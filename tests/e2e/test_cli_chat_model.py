"""`ewe generate` and `ewe chat` with a chat model: templates, conversations, empty answers, what a terminal shows."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.llm_rig import tiny_llm
from e2e.test_chat_memory import chat_llm
from show_fixture import PROMPT, FakeLLM, generation
from typer.testing import CliRunner, Result

from ewe import LLM, SamplingParams
from ewe.cli.main import app
from ewe.config import Config

TALK = [
    {"role": "user", "content": "Who was Mirela Hask?"},
    {"role": "assistant", "content": "A hydrologist."},
    {"role": "user", "content": "Where was she born?"},
]
TERMINAL = {"FORCE_COLOR": "1", "NO_COLOR": "", "TERM": "xterm", "COLUMNS": "200"}


def ewe(llm: Any, *arguments: str, stdin: str | None = None, **environment: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ewe.cli.generate.open_llm", lambda config: llm)
        patch.setattr("ewe.cli.generate.settings_of", lambda *args, **named: Config())
        return CliRunner(env=environment).invoke(app, list(arguments), input=stdin)


def plain(result: Result) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", result.stdout)


def test_a_chat_model_gets_a_users_message_and_the_question_is_the_prompt() -> None:
    llm = FakeLLM(template=True)
    result = ewe(llm, "generate", PROMPT)
    assert (result.exit_code, result.stdout) == (0, generation().text + "\n")
    [(text, _, _, options), _] = llm.calls
    assert text == f"<user>{PROMPT}"
    assert options == {"add_special_tokens": False, "question": PROMPT}


def test_raw_and_models_without_a_template_get_the_prompt_as_it_is() -> None:
    for llm, more in ((FakeLLM(template=True), ["--raw"]), (FakeLLM(), [])):
        assert ewe(llm, "generate", PROMPT, *more).exit_code == 0
        assert llm.calls[0][0] == PROMPT
        assert ewe(llm, "generate", "--json", *more, stdin="one\ntwo\n").exit_code == 0
        assert llm.calls[2][0] == ["one", "two"]


def test_prompts_and_conversations_may_stand_in_one_file_and_a_system_message_before_them(tmp_path: Path) -> None:
    own = [{"role": "system", "content": "Sing."}, TALK[0]]
    lines = [{"prompt": "one"}, {"messages": TALK, "id": "b"}, {"prompt": None, "messages": own}]
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    llm = FakeLLM(template=True)
    result = ewe(llm, "generate", "--prompts", str(file), "--system", "Be short.", "--json")
    assert result.exit_code == 0, result.output
    asked = "<user>Who was Mirela Hask?<assistant>A hydrologist.<user>Where was she born?"
    assert llm.calls[0][0] == [
        "<system>Be short.<user>one",
        f"<system>Be short.{asked}",
        "<system>Sing.<user>Who was Mirela Hask?",
    ]
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(item["id"], item["prompt"], item.get("messages")) for item in found] == [
        ("0", "one", None),
        ("b", "Where was she born?", TALK),
        ("2", "Who was Mirela Hask?", own),
    ]


def test_a_template_that_cannot_be_split_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's; a command has none
    with chat_llm("{% for m in messages %}{{ m.content | upper }}{% endfor %}:") as llm:
        result = ewe(llm, "generate", "--json", "--max-tokens", "3", stdin="The river\nThe sea\n")
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["error"] for line in result.stdout.splitlines()] == ["", ""]
    [line] = result.stderr.splitlines()
    assert line == (
        "memory stands before chats, not in them (memory.placement: bare), "
        "as the model's chat template changes the text around the memory"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--raw"], "the conversation 'x' needs a chat template, and --raw leaves it out"),
        (["--raw", "--system", "S"], "--raw leaves out the chat template, which --system needs"),
        (["--system", "S"], "the conversation 'x' needs a chat template, and the model 'fake' has none"),
        ([], "the conversation 'x' needs a chat template, and the model 'fake' has none"),
    ],
)
def test_a_conversation_without_a_template_is_refused_before_anything_is_computed(
    arguments: list[str], message: str
) -> None:
    llm = FakeLLM(template="--raw" in arguments)
    stdin = f'{{"prompt": "first"}}\n{json.dumps({"messages": TALK, "id": "x"})}\n'
    result = ewe(llm, "generate", *arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"ewe: {message}")
    assert result.stderr.count("\n") == 1
    assert llm.calls in ([], ["closed"])


def test_a_system_message_needs_a_template() -> None:
    result = ewe(FakeLLM(), "generate", "p", "--system", "S")
    assert result.exit_code == 2
    assert "--system needs a chat template, and the model 'fake' has none" in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"messages": TALK, "prompt": "p"}, 'standard input:2: give "prompt" or "messages", not both'),
        ({"messages": []}, "standard input:2: messages is empty"),
        ({"messages": [{"role": "user"}]}, 'standard input:2: messages[0] must have a text under "content"'),
        ({"messages": "Who?"}, "standard input:2: messages must be a list"),
        ({"id": 1}, 'text under "prompt", or a conversation under "messages"'),
    ],
)
def test_a_line_that_is_no_prompt_is_refused_by_its_number(line: dict[str, Any], message: str) -> None:
    llm = FakeLLM(template=True)
    result = ewe(llm, "generate", stdin=f'{{"prompt": "first"}}\n{json.dumps(line)}\n')
    assert (result.exit_code, llm.calls) == (2, [])
    assert message in result.stderr


def test_an_empty_prompt_is_no_message() -> None:
    result = ewe(FakeLLM(template=True), "generate", " ")
    assert (result.exit_code, result.stderr) == (2, "ewe: the prompt is empty: give it some text\n")


@pytest.mark.parametrize(
    ("template", "more", "advice"),
    [(True, [], "--min-tokens 20"), (True, ["--raw"], "try without --raw"), (False, [], "has no chat template")],
)
def test_an_empty_answer_is_said_with_what_to_try(template: bool, more: list[str], advice: str) -> None:
    result = ewe(FakeLLM(template=template), "generate", "nothing", *more)
    assert (result.exit_code, result.stdout) == (1, "\n")
    assert result.stderr.startswith("ewe: empty answer: the model ended at once; ")
    assert advice in result.stderr


def test_empty_answers_among_others_are_counted_and_shown() -> None:
    result = ewe(FakeLLM(template=True), "generate", stdin="one\nnothing\nnothing more\n", **TERMINAL)
    assert result.exit_code == 0
    assert "ewe: empty answer (2 of 3): the model ended at once" in result.stderr
    assert "> nothing\n(empty answer)\n" in plain(result)
    assert ewe(FakeLLM(template=True), "generate", stdin="nothing\nnothing more\n").exit_code == 1


def test_a_terminal_shows_what_was_taken_back_and_the_evidence() -> None:
    result = ewe(FakeLLM(template=True), "generate", PROMPT, **TERMINAL)
    assert result.exit_code == 0, result.output
    assert "\x1b[9;31mShe won the Larch Prize in 1961.\x1b[0m" in result.stdout
    shown = plain(result)
    parts = [
        "✗ She won the Larch Prize in 1961.",
        "↳ Larch Prize (Prize register): “1961 Ivo Sandt, 1963 Mirela Hask”",
        "✓ She won the Larch Prize in 1963.  (rewritten)",
        "6 sentences (4 supported, 1 inconclusive, 1 not checked), 2 rewrites",
    ]
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_what_is_not_checked_is_running_text() -> None:
    llm = FakeLLM(template=True)
    llm.verifies = False  # type: ignore[misc]
    result = ewe(llm, "generate", PROMPT, **TERMINAL | {"COLUMNS": "2000"})
    assert plain(result).split() == generation().text.split()


def test_many_answers_in_a_terminal_end_with_a_summary_each() -> None:
    result = ewe(FakeLLM(), "generate", stdin="one\ntwo\n", **TERMINAL)
    shown = plain(result)
    assert shown.count("6 sentences (4 supported, 1 inconclusive, 1 not checked), 2 rewrites") == 2
    assert shown.index("> one") < shown.index("6 sentences") < shown.index("> two")


def test_a_pipe_gets_plain_text() -> None:
    result = ewe(FakeLLM(template=True), "generate", stdin="one\ntwo\n")
    text = generation().text
    assert (result.stdout, result.stderr) == (f"> one\n{text}\n\n> two\n{text}\n\n", "")


def test_chat_keeps_the_conversation_under_its_system_message() -> None:
    llm = FakeLLM(template=True)
    result = ewe(llm, "chat", "--system", "Be short.", stdin="Hello\nAgain\n\n")
    assert (result.exit_code, result.stdout) == (0, f"{generation().text}\n" * 2)
    [(first, *_), (second, _, _, options), _] = llm.calls
    assert first == "<system>Be short.<user>Hello"
    assert second == f"<system>Be short.<user>Hello<assistant>{generation().text}<user>Again"
    assert options["question"] == "Again"


def test_chat_shows_verdicts_in_a_terminal_and_says_what_is_empty() -> None:
    result = ewe(FakeLLM(template=True), "chat", stdin="Hello\nnothing\n\n", **TERMINAL)
    assert "✓ She won the Larch Prize in 1963.  (rewritten)" in plain(result)
    assert "(empty answer: the model ended at once" in result.stderr


def test_chat_without_a_template_is_refused_before_the_first_question() -> None:
    result = ewe(FakeLLM(), "chat", stdin="Hello\n")
    assert result.exit_code == 2
    assert "has no chat template: use `ewe generate`" in result.stderr


@pytest.fixture
def tiny() -> Iterator[LLM]:
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}It"
    with tiny_llm() as llm, pytest.MonkeyPatch.context() as patch:
        patch.setattr(llm.tokenizer, "chat_template", template)
        patch.setattr(llm, "close", lambda: None)
        yield llm
        llm.check_integrity()


def test_a_real_engine_streams_and_collects_what_llm_chat_answers(tiny: LLM) -> None:
    options = ["--max-tokens", "12", "--ignore-eos", "--system", "Sing."]
    system = {"role": "system", "content": "Sing."}
    talks = [[system, {"role": "user", "content": text}] for text in ("The river", "The sea")]
    expected = [answer.text for answer in tiny.chat(talks, SamplingParams(max_tokens=12, ignore_eos=True))]
    one = ewe(tiny, "generate", "The river", *options)
    assert one.stdout_bytes.decode() == expected[0] + "\n"  # `stdout` turns \r\n into \n.
    many = ewe(tiny, "generate", "--json", *options, stdin="The river\nThe sea\n")
    found = [json.loads(line) for line in many.stdout.splitlines()]
    assert [(item["prompt"], item["text"]) for item in found] == [("The river", expected[0]), ("The sea", expected[1])]
    raw = ewe(tiny, "generate", "The river", "--raw", "--max-tokens", "12", "--ignore-eos")
    assert raw.stdout != one.stdout
