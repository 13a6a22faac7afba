"""How prompts reach the model, and how its answers are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ewe.cli.live_view import LiveView
from ewe.cli.prompts import Prompt
from ewe.cli.terminal import answer_text, clean, follow, output_console, summary
from ewe.cli.text_view import text_view
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.request import Request
from ewe.errors import InvalidRequestError
from ewe.text.conversation import Message
from ewe.types import Generation, Passage
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.llm import LLM


@dataclass(frozen=True, slots=True)
class PromptForm:
    """What prompts are put into. raw: nothing, not even the chat template. system: the first message, unless empty.

    Raises InvalidRequestError if both are asked for.
    """

    raw: bool = False
    system: str = ""

    def __post_init__(self) -> None:
        if self.raw and self.system:
            raise InvalidRequestError("--raw leaves out the chat template, which --system needs: give one of them")

    def conversation(self, prompt: Prompt) -> list[Message]:
        """The messages of a prompt. A conversation that begins with a system message keeps it.

        Raises InvalidRequestError for an empty prompt.
        """
        if not prompt.messages and not prompt.text.strip():
            raise InvalidRequestError("the prompt is empty: give it some text")
        messages = list(prompt.messages) or [{"role": "user", "content": prompt.text}]
        if self.system and messages[0]["role"] != "system":
            return [{"role": "system", "content": self.system}, *messages]
        return messages


@dataclass(frozen=True, slots=True)
class PromptRunner:
    """Asks one engine, all prompts in the same way."""

    llm: LLM
    form: PromptForm
    params: SamplingParams
    documents: Sequence[Passage] | None = None

    @property
    def chats(self) -> bool:
        """Whether prompts go through the model's chat template."""
        return not self.form.raw and self.llm.has_chat_template

    def check(self, prompts: Sequence[Prompt]) -> None:
        """Raises InvalidRequestError if a prompt, or --system, needs a chat template and none is used."""
        if self.chats:
            return
        reason = "--raw leaves it out" if self.form.raw else f"the model {self.llm.config.model.name!r} has none"
        talk = next((prompt for prompt in prompts if prompt.messages), None)
        if talk is not None:
            raise InvalidRequestError(
                f"the conversation {talk.id!r} needs a chat template, and {reason}: give it as a prompt"
            )
        if self.form.system:
            raise InvalidRequestError(f"--system needs a chat template, and {reason}: write it into the prompt")

    def generate(
        self,
        prompts: Sequence[Prompt],
        on_result: Callable[[int, Generation], None],
        on_refused: Callable[[int, InvalidRequestError], None],
    ) -> None:
        """Answers to all prompts, each told to `on_result` as it finishes; `on_refused` hears of each bad prompt."""
        requests: dict[int, Request] = {}
        for number, prompt in enumerate(prompts):
            try:
                requests[number] = self._request(prompt)
            except InvalidRequestError as error:
                on_refused(number, error)
        numbers = list(requests)
        self.llm.client.run(
            list(requests.values()),
            lambda index, generation: on_result(numbers[index], generation),
            lambda index, error: on_refused(numbers[index], error),
        )

    def _request(self, prompt: Prompt) -> Request:
        if not self.chats:
            return Request(prompt.text, self.params, self.documents)
        [request] = self.llm.chat_requests(self.form.conversation(prompt), self.params, self.documents)
        return request

    def stream(self, prompt: Prompt) -> Iterator[StreamEvent]:
        """The events of one answer. Raises as LLM.stream does."""
        if not self.chats:
            return self.llm.stream(prompt.text, self.params, self.documents)
        talk = self.llm.chat_prompt(self.form.conversation(prompt))
        return self.llm.stream(talk, self.params, self.documents, add_special_tokens=False, question=prompt.text)


def show_stream(events: Iterable[StreamEvent], checked: bool) -> Generation:
    """Draws a stream and returns what it ends with. Raises EWEError if the generation failed.

    A terminal gets one sentence per line with its verdict, and what was taken back, if sentences are checked; running
    text otherwise, the draft dim. A pipe or a file gets the text and nothing else.
    """
    console = output_console()
    if not (checked and console.is_terminal):
        with text_view(console) as view:
            return follow(events, view)
    with LiveView(console) as view:
        generation = follow(events, view)
    _print_summary(generation)
    return generation


def print_answer(prompt: Prompt, generation: Generation) -> None:
    """One of many answers under its prompt: plain text where a program reads, marks and a summary in a terminal."""
    console = output_console()
    print(f"> {clean(prompt.text)}")
    if console.is_terminal:
        console.print(answer_text(generation) if generation.text.strip() else "[bright_black](empty answer)[/]")
        _print_summary(generation)
    else:
        print(generation.text)
    print()
    sys.stdout.flush()


def _print_summary(generation: Generation) -> None:
    if text := summary(generation):
        output_console().print(text, style="bright_black", markup=False)


def why_empty(generation: Generation, runner: PromptRunner) -> str:
    """Why an answer holds no text, and what to try; empty if it holds some, or failed."""
    if generation.text.strip() or generation.finish_reason == "error":
        return ""
    if generation.stats.tokens_discarded:
        return "all that it wrote was refuted; --set feedback.on_exhausted=flag keeps such sentences, marked"
    if generation.finish_reason != "stop":
        return f"it ended with {generation.finish_reason!r}; raise --max-tokens or --deadline-s"
    if len(generation.token_ids) > 1:
        return "it began with a --stop text, or held white space only; try other --stop texts or another prompt"
    if runner.chats:
        return "the model ended at once; try another prompt, --min-tokens 20 or --temperature 0.7"
    if runner.llm.has_chat_template:
        return "the model ended at once; it is a chat model: try without --raw"
    return "the model ended at once; it has no chat template and goes on with a text: begin one, or try --min-tokens 20"
