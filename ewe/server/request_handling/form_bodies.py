"""Bodies that are forms: what is said of one by its head, before it is read."""

from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException

_CHARSETS = ("utf-8", "utf8")


def check_form(content_type: str | None) -> None:
    """Raises HTTPException for a form of another kind than files come in, which may take long to read.

    And for one of another character set than UTF-8, some of which make texts that nothing can write.
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise HTTPException(400, "send the file in a form, with the header `content-type: multipart/form-data`")
    charset = options.get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in _CHARSETS:
        raise HTTPException(400, "forms are read as UTF-8 only: leave `charset` out of the header `content-type`")
