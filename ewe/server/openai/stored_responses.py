"""/v1/responses/ID: responses that have been stored, and what they answered."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from ewe.server.engine_service import key_of, service_of
from ewe.server.http.error_responses import RefusedError
from ewe.server.response_store import StoredResponse
from ewe.server.schemas import response_answers as schemas
from ewe.server.schemas.common import ERROR_RESPONSES

router = APIRouter(prefix="/v1/responses", tags=["OpenAI"], responses=ERROR_RESPONSES)


def _stored(request: Request, response_id: str) -> StoredResponse:
    return service_of(request).responses.get(key_of(request), response_id)


@router.get("/{response_id}", response_model=schemas.ResponseBody)
async def retrieve_response(response_id: str, request: Request) -> Response:
    """A response as it was answered."""
    return Response(_stored(request, response_id).body, media_type="application/json")


@router.delete("/{response_id}")
async def delete_response(response_id: str, request: Request) -> schemas.DeletedResponse:
    """Forgets a response; those that follow it stay."""
    service_of(request).responses.delete(key_of(request), response_id)
    return schemas.DeletedResponse(id=response_id)


@router.post("/{response_id}/cancel")
async def cancel_response(response_id: str, request: Request) -> schemas.ResponseBody:
    """Refuses: only responses in the background could be cancelled, and there are none."""
    _stored(request, response_id)
    raise RefusedError(400, "only responses in the background can be cancelled, and this server has none")


@router.get("/{response_id}/input_items")
async def list_input_items(
    response_id: str,
    request: Request,
    order: Literal["asc", "desc"] = "desc",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: str | None = None,
) -> schemas.InputItems:
    """What a response answered, those of earlier responses included; the last come first."""
    items = _stored(request, response_id).items
    shown = [(f"item_{response_id}_{place}", item) for place, item in enumerate(items)]
    shown = shown if order == "asc" else shown[::-1]
    ids = [item_id for item_id, _ in shown]
    if after is not None and after not in ids:
        raise RefusedError(400, f"after: there is no item {after!r}", param="after")
    begin = 0 if after is None else ids.index(after) + 1
    page = [_shown(*one) for one in shown[begin : begin + limit]]
    return schemas.InputItems(
        data=page,
        first_id=page[0]["id"] if page else None,
        last_id=page[-1]["id"] if page else None,
        has_more=begin + limit < len(items),
    )


def _shown(item_id: str, item: dict[str, Any]) -> dict[str, Any]:
    """An item with an id, which is not its client's since pages are told apart by it, and texts as parts."""
    shown = {"status": "completed", **item, "id": item_id}
    if isinstance(shown.get("content"), str):
        is_answer = shown["role"] == "assistant"
        text = {"type": "output_text" if is_answer else "input_text", "text": shown["content"]}
        shown["content"] = [{**text, "annotations": []} if is_answer else text]
    return shown
