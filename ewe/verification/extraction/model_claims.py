"""Claims by a language model, through VeriScore's interface (Chen et al. 2024, 3.1)."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from ewe.errors import EWEError
from ewe.text.english import FUNCTION_WORDS, stem
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import fold
from ewe.types import Claim, VerificationRequest
from ewe.verification.endpoint.protocol import Completer, CompletionError, complete_each

NO_CLAIM = "No verifiable claim."
_BEFORE = 3
_AFTER = 1
_MAX_CHARACTERS = 2000  # Of the question and of each sentence in the prompt.
_MAX_CLAIMS = 64
_WORD = re.compile(r"[^\W_]+")
_MARKER = re.compile(r"^\s*(?:[-*•–]\s+|\(?\d{1,3}[.):]\s+)?")
_SENTENCE_LIKE = re.compile(r"[^\W\d_].*\s.*[^\W_]", re.DOTALL)
_INSTRUCTIONS = """\
List the verifiable claims of one sentence. The sentence stands between <sentence> and </sentence> in the text below; \
the other sentences are there only so that you understand it.

A verifiable claim states one event or state of affairs, past or present, that a reliable source could confirm or \
deny. Opinions, advice, questions, guesses and remarks about the text itself are none. Write each claim as a full \
sentence that can be understood alone: put names in the place of pronouns and of phrases such as "the film", and keep \
the times, places and numbers that belong to it. Say only what the marked sentence says. One fact per claim.

Answer with one claim per line and nothing else. If there is none, answer exactly: No verifiable claim."""


class ModelClaims:
    """Asks a language model for the claims of each sentence; satisfies `ClaimExtractor`.

    The model sees the question, three sentences before, the sentence, and the one after it if it is written already.
    An answer is one claim per line or "No verifiable claim."; anything else is an error, never guessed at.
    """

    def __init__(self, completer: Completer) -> None:
        self._completer = completer
        self._splitter = SentenceSplitter()

    def extract(self, requests: Sequence[VerificationRequest]) -> list[list[Claim] | EWEError]:
        """The claims of each sentence, or why the model named none; spans by alignment with the sentence."""
        nonempty = [request for request in requests if request.sentence.strip()]
        answers = iter(complete_each(self._completer, list(map(self._prompt, nonempty))) if nonempty else ())
        return [_claims_of(next(answers), request.sentence) if request.sentence.strip() else [] for request in requests]

    def _prompt(self, request: VerificationRequest) -> str:
        before = [request.preceding[start:end] for start, end in self._splitter.split(request.preceding)[-_BEFORE:]]
        after = [request.following[start:end] for start, end in self._splitter.split(request.following)[:_AFTER]]
        marked = f"<sentence>{_as_data(request.sentence)}</sentence>"
        text = " ".join([*map(_as_data, before), marked, *map(_as_data, after)])
        question = _as_data(request.prompt)
        return f"{_INSTRUCTIONS}\n\nQuestion: {question or '(none)'}\n\nText: {text}"


def _claims_of(answer: str | CompletionError, sentence: str) -> list[Claim] | EWEError:
    """The claims that an answer lists, with their places, or the error that it is."""
    if isinstance(answer, CompletionError):
        return answer
    try:
        return [Claim(text, *align(text, sentence)) for text in parse_claims(answer)]
    except CompletionError as error:
        return error


def parse_claims(answer: str) -> list[str]:
    """The claims of an answer, each once, in order; raises CompletionError for an answer of any other form."""
    lines = [_MARKER.sub("", line, count=1).strip() for line in answer.splitlines() if line.strip()]
    if not lines:
        raise CompletionError('the model answered nothing; expected claims, or "No verifiable claim."')
    nothing = [line for line in lines if line.casefold().rstrip(".").strip() == NO_CLAIM.casefold().rstrip(".")]
    if nothing:
        if len(lines) > 1:
            raise CompletionError(f"the model answered {NO_CLAIM!r} and claims at once")
        return []
    for line in lines:
        if line.endswith(":") or not _SENTENCE_LIKE.search(line):
            raise CompletionError(f"the model answered a line that is no claim: {line[:100]!r}")
    if len(lines) > _MAX_CLAIMS:
        raise CompletionError(f"the model answered {len(lines)} lines for one sentence")
    return list(dict.fromkeys(lines))


def _as_data(text: str) -> str:
    """Text for the prompt: one line of bounded length in which the marks of the sentence cannot occur."""
    line = " ".join(text.split())[:_MAX_CHARACTERS]
    return line.replace("<sentence>", "<_sentence>").replace("</sentence>", "</_sentence>")


def align(claim: str, sentence: str) -> tuple[int, int]:
    """Code points [start, end) of `sentence` that hold the claim's words, from the first to the last one matched.

    Content words are matched in order by their stems; a claim that shares none with the sentence gets all of the
    sentence without surrounding white space. Always 0 <= start < end for a sentence that is not blank.
    """
    claim_words = [stem(fold(match.group())) for match in _WORD.finditer(claim)]
    places = list(_WORD.finditer(sentence))
    given = [stem(fold(match.group())) for match in places]
    matcher = SequenceMatcher(a=claim_words, b=given, autojunk=False)
    matched = [at for block in matcher.get_matching_blocks() for at in range(block.b, block.b + block.size)]
    content = [at for at in matched if fold(places[at].group()) not in FUNCTION_WORDS]
    if content:
        return places[content[0]].start(), places[content[-1]].end()
    start = len(sentence) - len(sentence.lstrip())
    return start, max(len(sentence.rstrip()), start)
