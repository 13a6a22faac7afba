"""What a conversation asks of the engine, whatever form it came in."""

from typing import Any

from ewe.engine.request import has_grammar
from ewe.server.engine_service import Service
from ewe.server.http.error_responses import RefusedError
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.server.traffic.orders import Order
from ewe.text.conversation import question_of, texts_of, topic_of
from ewe.text.json_schema import check_schema
from ewe.text.tool_calls.tools import ToolRequest
from ewe.text.tool_calls.use import ToolUse


def conversation_order(
    service: Service,
    body: SamplingRequest,
    field: str,
    messages: list[dict[str, Any]],
    request: ToolRequest | None,
    thinks: bool | None,
    continues: bool = False,
    **more: Any,
) -> Order:
    """What is asked by messages, which the request has in `field`; raises RefusedError, InvalidRequestError.

    request: the tools that may be called. thinks: whether the model is to reason. continues: whether the last message
    begins the answer. more: further parts of the order.
    """
    tools = _tool_use(service, body, request)
    thinking = False if has_grammar(tools, body.json_schema, body.grammar) else thinks
    return Order(
        body=body,
        prompts=lambda chats: [chats.chat_prompt(messages, tools, thinking, continues)],
        texts=(field, texts_of(messages)),
        special_tokens=False,
        question=question_of(messages),
        topic=topic_of(messages),
        tools=tools,
        prefill=messages[-1]["content"] if continues else "",
        **more,
    )


def _tool_use(service: Service, body: SamplingRequest, request: ToolRequest | None) -> ToolUse | None:
    """How the model may call the tools of a request; raises RefusedError, InvalidRequestError."""
    template = service.engine.prompts.chat_template
    tools = template.tool_use(request, service.settings.tool_parser, body.json_schema)
    if tools is not None and body.json_schema is not None:
        check_schema(body.json_schema, f"{body.form_field}: ")  # the engine gets one grammar of both, and names tools
    if tools is not None and body.grammar is not None:
        raise RefusedError(
            400, "structured_outputs beside tools: only JSON is supported yet", param="structured_outputs"
        )
    if tools is not None and body.ewe.stream == "draft":
        # What looks like the beginning of a call may still become content, and the other way round.
        raise RefusedError(400, 'ewe.stream: "draft" beside tools is not supported yet', param="ewe.stream")
    return tools
