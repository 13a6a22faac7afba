"""Reading e-mails (RFC 5322): what the sender wrote, under the subject."""

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from ewe.retrieval.ingest.documents import Block, Document, Problem, ReadOptions, UnreadableError
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.html import text_of

_SIGNATURE = re.compile(r"^-- $", re.MULTILINE)
_QUOTED = re.compile(r"(?:^[^\n>]{0,300}:[ \t]*\n\s*)?(?:^>[^\n]*(?:\n|\Z))+", re.MULTILINE)


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of the mail. What it quotes of others (lines that begin with ">", and the line that announces them),
    the signature and attachments are left out. Raises UnreadableError for what is no mail.
    """
    message = message_from_bytes(block.file.path.read_bytes(), policy=default)
    if not (message["from"] or message["subject"]):
        raise UnreadableError("it is no e-mail: it has neither From nor Subject")
    stated = getattr(message["date"], "datetime", None)
    values = {
        "text": _QUOTED.sub("", _SIGNATURE.split(_body(message), maxsplit=1)[0]).strip(),
        "id": block.file.label,
        "title": str(message["subject"] or "").strip() or block.file.path.stem,
        "date": stated.isoformat() if stated else "",
        "from": str(message["from"] or ""),
    }
    yield whole_document(values, block, options)


def _body(message: EmailMessage) -> str:
    """The plain text, or that of the HTML where there is none."""
    body = message.get_body(("plain", "html"))
    if body is None:
        return ""
    try:
        text = str(body.get_content()).replace("\r\n", "\n")
    except (LookupError, ValueError) as error:
        raise UnreadableError(f"its text cannot be decoded ({error})") from error
    return text_of(text) if body.get_content_subtype() == "html" else text
