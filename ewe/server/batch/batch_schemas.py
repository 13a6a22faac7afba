"""Files and batches on the wire, as OpenAI has them."""

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field

from ewe.server.batch.requests import BatchUrl, LineError
from ewe.server.schemas.common import AnswerModel, Metadata, RequestModel

BatchStatus = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]


class BatchCreation(RequestModel):
    """A file of requests to one endpoint; completion_window: the time after which what is left stays unanswered."""

    input_file_id: str
    endpoint: BatchUrl
    completion_window: Literal["24h"]
    metadata: Metadata | None = None


class Listing(RequestModel):
    """A page of a list; after: the id that the page before ended with."""

    after: str | None = None
    limit: Annotated[int, Field(ge=1, le=100, strict=False)] = 20


class FileListing(Listing):
    """A page of files, the newest first or the oldest; of all purposes or of one."""

    limit: Annotated[int, Field(ge=1, le=10_000, strict=False)] = 10_000
    order: Literal["asc", "desc"] = "desc"
    purpose: str | None = None


def _unicode(name: str) -> str:
    """A name that UTF-8 can carry; halves of surrogate pairs become question marks."""
    return name.encode(errors="replace").decode()


class StoredFile(AnswerModel):
    """A file of requests (purpose batch) or of results (batch_output); created_at: in unix seconds."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: Annotated[str, AfterValidator(_unicode)]
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed"] = "processed"


class DeletedFile(AnswerModel):
    """A file that is no more."""

    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class BatchErrors(AnswerModel):
    """Why a batch failed."""

    object: Literal["list"] = "list"
    data: list[LineError]


class RequestCounts(AnswerModel):
    """Requests of a batch: all, those answered with status 200, those with an error."""

    total: int = 0
    completed: int = 0
    failed: int = 0


class Batch(AnswerModel):
    """A batch; times in unix seconds, null for what has not happened."""

    id: str
    object: Literal["batch"] = "batch"
    endpoint: BatchUrl
    errors: BatchErrors | None = None
    input_file_id: str
    completion_window: Literal["24h"] = "24h"
    status: BatchStatus = "validating"
    output_file_id: str | None = None
    error_file_id: str | None = None
    created_at: int
    in_progress_at: int | None = None
    expires_at: int
    finalizing_at: int | None = None
    completed_at: int | None = None
    failed_at: int | None = None
    expired_at: int | None = None
    cancelling_at: int | None = None
    cancelled_at: int | None = None
    request_counts: RequestCounts = RequestCounts()
    metadata: dict[str, str] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.status in ("failed", "completed", "expired", "cancelled")


_Item = TypeVar("_Item", StoredFile, Batch)


class Page(AnswerModel, Generic[_Item]):
    """Part of a list; has_more: whether there is more of it after last_id."""

    object: Literal["list"] = "list"
    data: list[_Item]
    first_id: str | None
    last_id: str | None
    has_more: bool
