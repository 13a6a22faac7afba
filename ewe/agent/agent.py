"""An agent that reasons, acts and observes in turn, over memories that say how far they can be believed (VeriMem)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ewe.agent.memory_tools import MemoryTools
from ewe.agent.models import as_completer
from ewe.agent.prompt import as_data, ask_again, fill_prompt
from ewe.agent.reading import NoStepError, Reply, read_step
from ewe.agent.records import AgentResult, Call, Step, Stopped, cited
from ewe.agent.tools import Tool, ToolError
from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.service import MemoryService
from ewe.protocols import Retriever
from ewe.sampling import SamplingParams
from ewe.verification.endpoint.protocol import Completer, CompletionError

if TYPE_CHECKING:
    from ewe.llm import LLM

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
        asked = prompt
        for _ in range(2):
            text = _one_text(self._completer.complete([asked]))
            replies.append(text)
            try:
                return read_step(text)
            except NoStepError as error:
                problems.append(str(error))
                asked = ask_again(prompt, text, str(error))
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
        told = as_data({"result": tool.call(call.arguments)})
    except ToolError as error:
        return as_data({"error": str(error)})
    if len(told) <= _MOST_OBSERVED:
        return told
    kept = told[:_MOST_OBSERVED]
    return as_data({"beginning_of_a_long_result": kept, "characters_left_out": len(told) - len(kept)})
