"""Documents of a request as passages."""

from __future__ import annotations

from collections.abc import Sequence

from ewe.errors import InvalidRequestError
from ewe.types import Passage

Document = str | Passage


def passages_of(documents: Sequence[Document], capacity: int, has_tokenizer: bool) -> list[Passage]:
    """The documents as passages, those without a name numbered.

    capacity: how many units they have room in. Raises InvalidRequestError.
    """
    if isinstance(documents, str):
        raise InvalidRequestError("documents must be a list of texts or passages, not one string")
    if len(documents) > capacity:
        raise InvalidRequestError(
            f"{len(documents)} documents do not fit into {capacity} units: raise memory.retrieval_units, or put "
            "them into a datastore"
        )
    if documents and not has_tokenizer:
        raise InvalidRequestError("documents need a tokenizer, and this model has none")
    passages = [
        document if isinstance(document, Passage) else Passage(id=f"document-{number}", text=document)
        for number, document in enumerate(documents, 1)
    ]
    for passage in passages:
        if not passage.text.strip():
            raise InvalidRequestError(f"document {passage.id!r} is empty")
    return passages
