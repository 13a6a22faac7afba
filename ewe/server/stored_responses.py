"""/v1/responses/ID: responses that have been stored, and what they answered."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request

from ewe.server.engine_service import key_of, service_of
from ewe.server.error_responses import RefusedError
from ewe.server.response_store import StoredResponse
from ewe.server.schemas import response_answers as schemas
from ewe.server.schemas.common import ERROR_RESPONSES

router = APIRouter(prefix="/v1/responses", tags=["OpenAI"], responses=ERROR_RESPONSES)


def _stored(request: Request, response_id: str) -> StoredResponse:
    return service_of(request).responses.get(key_of(request), response_id)


@router.get("/{response_id}")
async def retrieve_response(response_id: str, request: Request) -> schemas.ResponseBody:
    """A response as it was answered."""
    return _stored(request, response_id).body


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
    items = [_shown(response_id, place, item) for place, item in enumerate(_stored(request, response_id).items)]
    items = items if order == "asc" else items[::-1]
    ids = [item["id"] for item in items]
    begin = ids.index(after) + 1 if after in ids else 0
    page = items[begin : begin + limit]
    return schemas.InputItems(
        data=page,
        first_id=page[0]["id"] if page else None,
        last_id=page[-1]["id"] if page else None,
        has_more=begin + limit < len(items),
    )


def _shown(response_id: str, place: int, item: Any) -> dict[str, Any]:
    """An item with an id, and texts as parts."""
    shown: dict[str, Any] = {"id": f"item_{response_id}_{place}", "status": "completed"}
    shown |= item.model_dump(mode="json", exclude_none=True)
    if isinstance(shown.get("content"), str):
        is_answer = shown["role"] == "assistant"
        text = {"type": "output_text" if is_answer else "input_text", "text": shown["content"]}
        shown["content"] = [{**text, "annotations": []} if is_answer else text]
    return shown
