"""An agent that reasons, acts and observes in turn, over memories that say how far they can be believed (VeriMem)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.agent.function_tools import Tool, ToolError
from ewe.longterm.agent.memory_tools import MemoryTools
from ewe.longterm.agent.result import AgentResult, Call, Step, Stopped, cited
from ewe.longterm.agent.step_format import NoStepError, Reply, as_data, ask_again, fill_prompt, read_step
from ewe.longterm.service import MemoryService
from ewe.types import MemoryOptions
from ewe.types.protocols import Retriever
from ewe.types.sampling_params import SamplingParams
from ewe.verification.endpoint import open_endpoint
from ewe.verification.endpoint.protocol import Completer, CompletionError, LocalCompleter

if TYPE_CHECKING:
    from ewe.llm import LLM

STOP = ("\nObservation:",)
"""Where a model is made to stop: what follows would be an observation of its own making."""
_PARAMS = SamplingParams(max_tokens=1024, stop=STOP)
_MOST_OBSERVED = 6000  # Code points of one observation.


class VeriMemAgent:
    """Answers questions in steps of thought, action and observation with any chat model.

    model: an `LLM`, a completer or "openai:MODEL@URL"; params: for an `LLM`. memories: what `search_memory` and
    `remember` work on; lookup: passages for `look_up`. tools: functions with typed parameters and a docstring, or
    `Tool`s. name: the agent's, for memories that are kept between it and a user. max_steps: of one run, the answer
    included; a reply that is no step is asked for once more. Runs may go on in several threads if the model allows
    it. Raises ConfigError for a tool that cannot be one, and for names that stand twice.
    """

    def __init__(
        self,
        model: LLM | Completer | str,
        memories: MemoryService | None = None,
        *,
        lookup: Retriever | None = None,
        tools: Sequence[Callable[..., Any] | Tool] = (),
        name: str = "",
        max_steps: int = 8,
        params: SamplingParams | None = None,
    ) -> None:
        if max_steps < 1:
            raise ConfigError(f"max_steps must be at least 1, got {max_steps}")
        self._completer = as_completer(model, params)
        self._memories, self._lookup, self._name, self._limit = memories, lookup, name, max_steps
        self._tools = [tool if isinstance(tool, Tool) else Tool.of(tool) for tool in tools]
        self._all_tools(MemoryTools(memories, lookup, "user", name))

    def run(self, question: str, user: str = "") -> AgentResult:
        """The answer to a question of a user, or the honest end of the attempt; see `AgentResult`.

        user: whose memories may be seen and kept; without one only shared ones and the agent's own. Errors of the
        model, of tools and of memories end up in the result. Raises InvalidRequestError for an empty question.
        """
        if not question.strip():
            raise InvalidRequestError("the question is empty: ask something")
        memory_tools = MemoryTools(self._memories, self._lookup, user, self._name)
        tools = self._all_tools(memory_tools)
        steps: list[Step] = []
        stopped, error = None, ""
        while stopped is None:
            step, stopped, error = self._step(question, tools, steps)
            steps.append(step)
        answer = steps[-1].answer
        memories = cited(memory_tools.shown.values(), answer or "")
        return AgentResult(question, answer, stopped, tuple(steps), memories, memory_tools.passages, error)

    def _all_tools(self, memory_tools: MemoryTools) -> dict[str, Tool]:
        tools: dict[str, Tool] = {}
        for tool in [*map(Tool.of, memory_tools.functions()), *self._tools]:
            if tool.name in tools:
                raise ConfigError(f"two tools are called {tool.name}: rename yours")
            tools[tool.name] = tool
        return tools

    def _step(self, question: str, tools: dict[str, Tool], steps: Sequence[Step]) -> tuple[Step, Stopped | None, str]:
        """The next step, why the run ends with it if it does, and what went wrong."""
        number = len(steps) + 1
        replies: list[str] = []
        problems: list[str] = []
        try:
            reply = self._reply(fill_prompt(list(tools.values()), question, steps, self._limit), replies, problems)
        except CompletionError as error:
            step = Step(number, replies=tuple(replies), problems=tuple(problems))
            return step, Stopped.MODEL_FAILED, str(error)
        heard = (tuple(replies), tuple(problems))
        if reply is None:
            return Step(number, "", None, None, "", *heard), Stopped.MALFORMED, problems[-1]
        if reply.call is None:
            return Step(number, reply.thought, None, reply.answer, "", *heard), Stopped.ANSWERED, ""
        if number == self._limit:
            step = Step(number, reply.thought, reply.call, None, "", *heard)
            return step, Stopped.STEP_LIMIT, f"no answer in {self._limit} steps; the last action was not taken"
        return Step(number, reply.thought, reply.call, None, _observe(tools, reply.call), *heard), None, ""

    def _reply(self, prompt: str, replies: list[str], problems: list[str]) -> Reply | None:
        """What the model wrote as a step, at the second try at the latest; None if neither was one."""
        request = prompt
        for _ in range(2):
            text = _one_text(self._completer.complete([request]))
            replies.append(text)
            try:
                return read_step(text)
            except NoStepError as error:
                problems.append(str(error))
                request = ask_again(prompt, text, str(error))
        return None


def _one_text(answers: Sequence[Any]) -> str:
    if len(answers) != 1 or not isinstance(answers[0], str):
        raise CompletionError("the completer must give one text per prompt")
    return answers[0]


def _observe(tools: dict[str, Tool], call: Call) -> str:
    """One line of JSON: what a tool returned, or why it did not."""
    tool = tools.get(call.tool)
    try:
        if tool is None:
            raise ToolError(f"there is no tool {call.tool!r}; the tools are {', '.join(tools) or 'none'}")
        observation = as_data({"result": tool.call(call.arguments)})
    except ToolError as error:
        return as_data({"error": str(error)})
    if len(observation) <= _MOST_OBSERVED:
        return observation
    kept = observation[:_MOST_OBSERVED]
    return as_data({"beginning_of_a_long_result": kept, "characters_left_out": len(observation) - len(kept)})


def as_completer(model: LLM | Completer | str, params: SamplingParams | None = None) -> Completer:
    """What answers the prompts of an agent.

    model: an `LLM` (asked through its chat template, if it has one), any completer, or "openai:MODEL@URL". params: for
    an `LLM`; by default 1,024 tokens, greedy, up to an observation. Raises ConfigError for anything else.
    """
    if isinstance(model, str):
        return open_endpoint(model, STOP)
    if isinstance(model, Completer):
        return model
    from ewe.llm import LLM

    if not isinstance(model, LLM):
        raise ConfigError(f"an agent's model is an LLM, a completer or 'openai:MODEL@URL', got {type(model).__name__}")
    return engine_completer(model, params or _PARAMS)


def engine_completer(llm: LLM, params: SamplingParams) -> Completer:
    """An `LLM` without its memories as a completer; raises CompletionError where it fails or is cut at its limit."""
    apart = MemoryOptions(scope="none") if llm.config.longterm.path is not None else None

    def ask(prompt: str) -> str:
        if llm.has_chat_template:
            [answer] = llm.chat([{"role": "user", "content": prompt}], params, memory=apart)
        else:
            [answer] = llm.generate(prompt, params, memory=apart)
        if answer.finish_reason != "stop":
            reason = answer.error or f"it ended with {answer.finish_reason!r} after {params.max_tokens} tokens at most"
            raise CompletionError(f"the model wrote no whole step: {reason}")
        return answer.text

    return LocalCompleter(lambda prompts: [ask(prompt) for prompt in prompts])
