"""Checks many texts and brings every result where it belongs: the screen, JSON lines, the page."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from pathlib import Path

import typer
from rich.progress import Progress

from ewe.cli.check_view import print_checked, score_line
from ewe.cli.prompts import json_lines
from ewe.cli.terminal import INTERRUPTED, output_console, progress_bar, say
from ewe.engine.text_checker import check_text
from ewe.errors import InvalidRequestError
from ewe.evaluation.report import checked_data, write_check_page
from ewe.evaluation.report.checked_text import wrong_calls
from ewe.evaluation.veriscore import ClaimCounts, count_claims, is_refusal, score_response, veriscore
from ewe.text.check_result import CheckedText
from ewe.types import Verdict
from ewe.types.protocols import Verifier

LARGEST_TEXT = 256 << 20
"""Bytes; a larger file is refused, because verdicts and evidence of all its sentences are held until it is done."""
STDIN = "-"
_DOCUMENTS = (".docx", ".pptx", ".xlsx", ".pdf", ".html", ".htm", ".eml")


@dataclass(frozen=True, slots=True)
class NamedText:
    """A text with the name under which its result is found again, and the prompt that it answers, if known."""

    name: str
    text: str
    prompt: str = ""


def read_texts(source: str, prompt: str = "", encoding: str | None = None) -> Iterator[NamedText]:
    """The texts of one file, or of standard input for "-".

    A file that ends in .jsonl holds one object per line: "text", perhaps "prompt" and "id", as `ewe generate` writes
    them. Any other file is one text; of `_DOCUMENTS` it is what a datastore reads in them. encoding: None takes UTF-8,
    or what the file's mark says. Raises InvalidRequestError naming the file for what cannot be read, is too large,
    binary, mis-encoded or empty.
    """
    if source != STDIN and Path(source).suffix.lower() in _DOCUMENTS:
        text = _text_of_document(source)
    else:
        text = _decode(_read(source), source, encoding)
    if source.endswith(".jsonl"):
        yield from _objects(text, source, prompt)
        return
    if not text.strip():
        raise InvalidRequestError(f"{_named(source)} holds no text")
    yield NamedText(_named(source), text, prompt)


def files_or_stdin(files: Sequence[str] | None) -> list[str]:
    """The files named, each once, or standard input. Raises InvalidRequestError if that is a terminal."""
    if files:
        return list(dict.fromkeys(files))
    if sys.stdin.isatty():
        raise InvalidRequestError("nothing to check: name a file, or give the text on standard input")
    return [STDIN]


def _read(source: str) -> bytes:
    try:
        if source == STDIN:
            data = sys.stdin.buffer.read(LARGEST_TEXT + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise InvalidRequestError(f"cannot read {source}: {error.strerror}") from error
    if len(data) > LARGEST_TEXT:
        raise InvalidRequestError(f"{_named(source)} is larger than {LARGEST_TEXT >> 20} MiB: check it in parts")
    return data


def _text_of_document(source: str) -> str:
    from ewe.retrieval.ingest.documents import Document, Problem, ReadOptions, SourceFile
    from ewe.retrieval.ingest.files import KINDS
    from ewe.retrieval.ingest.readers import read_blocks, read_documents

    reading, path = ReadOptions(), Path(source)
    texts: list[str] = []
    for block in read_blocks(SourceFile(path, source, KINDS[path.suffix.lower()]), reading):
        for found in [block] if isinstance(block, Problem) else read_documents(block, reading):
            if isinstance(found, Problem):
                raise InvalidRequestError(f"cannot check {found}")
            texts += [found.text] if isinstance(found, Document) else []
    return "\n\n".join(text.strip() for text in texts)


def _decode(data: bytes, source: str, encoding: str | None) -> str:
    from ewe.retrieval.ingest.documents import UnreadableError
    from ewe.retrieval.ingest.files import check_encoding, decode

    check_encoding(encoding)
    if data.startswith(b"%PDF-"):
        raise InvalidRequestError(f"{_named(source)} is a PDF: give it as a file whose name ends in .pdf")
    try:
        return decode(data, encoding)
    except UnreadableError as error:
        others = f"; documents can be {', '.join(_DOCUMENTS)}" if "binary" in str(error) else ""
        raise InvalidRequestError(f"cannot check {_named(source)}: {error}{others}") from error


def _objects(text: str, source: str, prompt: str) -> Iterator[NamedText]:
    any_object = False
    for place, value in json_lines(text, source):
        any_object = True
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            raise InvalidRequestError(f'{place}: expected an object with a text under "text"')
        own = value.get("prompt", "")
        if not isinstance(own, str):
            raise InvalidRequestError(f"{place}: prompt must be a text")
        yield NamedText(str(value.get("id", place)), value["text"], own or prompt)
    if not any_object:
        raise InvalidRequestError(f"{source} holds no text")


def _named(source: str) -> str:
    return "standard input" if source == STDIN else source


CLEAN, REFUTED, FAILED = 0, 1, 2


@dataclass(slots=True)
class CheckRun:
    """A verifier, and where the results of checking with it go.

    against: what it checks against, in words. k: K of VeriScore; None takes the median of the texts. expected, errors:
    what every claim should be, and the file that takes the claims that are not.
    """

    verifier: Verifier
    against: str
    k: float | None = None
    as_json: bool = False
    html: Path | None = None
    expected: Verdict | None = None
    errors: Path | None = None
    checked: dict[str, CheckedText] = field(default_factory=dict)
    counts: list[ClaimCounts] = field(default_factory=list)
    refuted: bool = False
    failed: bool = False

    def check(self, sources: Sequence[str], prompt: str, encoding: str | None) -> int:
        """Checks every text of every source; the exit status. One that cannot be read does not stop the others."""
        try:
            with progress_bar() as progress:
                for source in sources:
                    self._check_source(source, prompt, encoding, progress)
        except KeyboardInterrupt as interrupt:
            say(f"interrupted after {len(self.counts)} texts")
            raise typer.Exit(INTERRUPTED) from interrupt
        finally:
            self._finish()
        if self.failed:
            return FAILED
        return REFUTED if self.refuted else CLEAN

    def _check_source(self, source: str, prompt: str, encoding: str | None, progress: Progress) -> None:
        try:
            for text in read_texts(source, prompt, encoding):
                self._check_text(text, progress)
        except InvalidRequestError as error:
            self._fail(str(error))

    def _check_text(self, named: NamedText, progress: Progress) -> None:
        task = progress.add_task(named.name, total=None)
        try:
            checked = check_text(
                named.text,
                self.verifier,
                named.prompt,
                on_progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
        except InvalidRequestError as error:
            self._fail(f"{named.name}: {error}")
            return
        finally:
            progress.remove_task(task)
        self._deliver(named.name, checked)

    def _deliver(self, name: str, checked: CheckedText) -> None:
        self.refuted |= checked.verdict is Verdict.REFUTED
        if checked.error:
            missing = f"{checked.num_failed} of {len(checked.sentences)} sentences"
            self._fail(f"{name}: {missing} could not be checked: {checked.error}")
        self.counts.append(count_claims(checked.claims, refused=is_refusal(checked.text)))
        if self.expected is not None and self.errors is not None:
            with self.errors.open("a", encoding="utf-8") as lines:
                lines.writelines(f"{json.dumps(pair)}\n" for pair in wrong_calls(checked, self.expected))
        if self.html is not None:
            names = chain([name], (f"{name} ({number})" for number in count(len(self.counts))))
            self.checked[next(one for one in names if one not in self.checked)] = checked
        if self.as_json:
            scores = {**asdict(score_response(self.counts[-1], self.k)), "k": self.k} if self.k else None
            document = {"id": name, **checked_data(checked), "veriscore": scores}
            print(json.dumps(document, ensure_ascii=False), flush=True)
        else:
            print_checked(output_console(), name, checked)

    def _finish(self) -> None:
        if not self.counts:
            return
        score = veriscore(self.counts, self.k)
        if not self.as_json:
            output_console().print(score_line(score), markup=False)
        if self.html is not None:
            scores = {
                name: {**asdict(own), "k": score.k} for name, own in zip(self.checked, score.responses, strict=True)
            }
            write_check_page(self.html, self.checked, scores, self.against)

    def _fail(self, message: str) -> None:
        self.failed = True
        say(message)
