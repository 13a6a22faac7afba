"""How many tokens a request would have read, before anything is written."""

from fastapi import Request

from ewe.config.memory_mark import PlacedPrompt
from ewe.server.engine_service import service_of
from ewe.server.request_handling.thread_work import Cancellation, run_in_thread
from ewe.server.traffic.order_checks import checked_documents
from ewe.server.traffic.orders import Order


async def count_tokens(request: Request, order: Order) -> int:
    """The tokens of an order's prompt and of the documents that it brings; raises RefusedError, InvalidRequestError."""
    service = service_of(request)
    service.check_model(order.body.model)
    documents = checked_documents(order, service.settings, service.max_model_len)

    def count(_: Cancellation) -> int:
        prompts, encode = service.engine.prompts, service.engine.tokenizing.encode
        [prompt] = order.prompts(prompts)
        text = prompt.text if isinstance(prompt, PlacedPrompt) else str(prompt)
        return len(encode(text, False)) + sum(len(encode(document.text, False)) for document in documents)

    return await run_in_thread(request, service.queues.tokens, count)
