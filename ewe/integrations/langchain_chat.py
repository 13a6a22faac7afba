"""LangChain's chat model with what this engine says of an answer (`pip install 'ewe-engine[langchain]'`)."""

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai import BaseModel


class ChatEWE(ChatOpenAI):
    """`ChatOpenAI` for a server of this engine, whose messages keep what ChatOpenAI drops of chat completions.

    A message has the answer's citations in `additional_kwargs["annotations"]`, and its sentences with their verdicts,
    sources and counts (the object `ewe`) in `response_metadata["ewe"]`; of a stream, the sum of its chunks has them.
    Documents and what else the engine takes go into `extra_body`.
    """

    def _create_chat_result(
        self, response: dict[str, Any] | BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        body = response if isinstance(response, dict) else response.model_dump(warnings=False)
        for generation, choice in zip(result.generations, body["choices"], strict=True):
            _keep(generation.message, choice["message"], body)
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if generation is not None:
            choices = chunk.get("choices") or [{}]
            _keep(generation.message, choices[0].get("delta") or {}, chunk)
        return generation


def _keep(message: BaseMessage, part: dict[str, Any], body: dict[str, Any]) -> None:
    """Puts citations of a message or delta, and what the whole answer or chunk says beside it, into the message."""
    if part.get("annotations"):
        message.additional_kwargs["annotations"] = part["annotations"]
    result = body.get("ewe")
    if result and "event" not in result:  # events tell of the way to the answer
        message.response_metadata["ewe"] = result
