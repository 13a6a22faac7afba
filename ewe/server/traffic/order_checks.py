"""What is refused of an order before it is let in, and what the engine is told of the rest."""

from __future__ import annotations

from ewe.server.http.error_responses import RefusedError
from ewe.server.settings import ServerSettings
from ewe.server.traffic.admission import check_documents, check_prompt_texts, tokens_to_ask
from ewe.server.traffic.orders import Order, passages_of, tool_texts
from ewe.types import Passage
from ewe.types.sampling_params import SamplingParams


def checked_documents(order: Order, settings: ServerSettings, max_model_len: int) -> list[Passage]:
    """The documents of an order whose texts are no longer than they may be; raises RefusedError, InvalidRequestError.

    max_model_len: tokens of a prompt, its answer and a memory unit together.
    """
    most = settings.max_prompt_bytes
    check_prompt_texts(order.texts[1], most, max_model_len, order.texts[0])
    documents = passages_of(order.body.documents)
    check_documents(documents)
    check_prompt_texts(tool_texts(order.tools), most, max_model_len, "tools")
    return documents


def sampling_params(order: Order, settings: ServerSettings) -> SamplingParams:
    """How the answers are drawn; raises RefusedError for more of them, or longer ones, than there may be."""
    limit = tokens_to_ask(order.max_tokens, order.default_max_tokens, settings.max_tokens, order.length_field)
    params = order.body.sampling_params(limit, order.logprobs, order.prompt_logprobs, settings.deadline)
    if params.n > settings.max_n:
        raise RefusedError(400, f"n: at most {settings.max_n} answers here, got {params.n}", param="n")
    return params
