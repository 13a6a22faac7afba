"""The prompts of a factuality evaluation: the paper's four sets by name, or any others."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Self

from ewe.errors import ConfigError, InvalidRequestError

KS = {"longfact": 55, "fava": 49, "alpacafact": 31, "biography": 43}
"""The paper's sets, and the number of supported claims that makes recall 1 in each."""

DETAIL = (
    "Provide as many specific details and examples as possible (such as names of people, numbers, events, locations, "
    "dates, times, etc.)"
)
"""What the paper adds to every prompt (appendix A, after Wei et al., 2024)."""

_BIOGRAPHY = "Tell me a bio of {}."


@dataclass(frozen=True, slots=True)
class Item:
    """One prompt of a set: what retrieval, verifier and judges are told (question), what the model is asked (text).

    number: its place in the whole set, from which the seed of its answer follows. title: of the article that is asked
    about, where that is known: claims count only if its passages support them.
    """

    id: str
    question: str
    text: str
    number: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts, and the K of their scores (None: the median number of claims of the table)."""

    name: str
    items: tuple[Item, ...]
    k: float | None = None

    @property
    def digest(self) -> str:
        """What tells these prompts from others."""
        rows = [(item.id, item.text, item.title) if item.title else (item.id, item.text) for item in self.items]
        return sha256(repr(rows).encode()).hexdigest()[:12]

    def shard(self, index: int, count: int) -> Self:
        """Part `index` of `count` (from 1 on): every count-th prompt."""
        return replace(self, items=self.items[index - 1 :: count])


def prompt_set(
    name: str, prompts: Iterable[tuple[str, str, str]], suffix: str = DETAIL, k: float | None = None
) -> PromptSet:
    """The set of this name made of (id, prompt, title); for "biography" a prompt is a person's name, or a request.

    suffix: what is added to every prompt for the model, but not to the question. k: None for the set's own. Raises
    InvalidRequestError without prompts, or for an empty one.
    """
    items = []
    for number, (key, prompt, title) in enumerate(prompts):
        if not prompt.strip():
            raise InvalidRequestError(f"prompt {key!r} is empty: give it some text, or leave it out")
        is_name = name == "biography" and not prompt.startswith("Tell me")
        question = _BIOGRAPHY.format(prompt) if is_name else prompt
        items.append(Item(key, question, f"{question} {suffix}".strip(), number, title))
    if not items:
        raise InvalidRequestError("there is no prompt to answer")
    return PromptSet(name, tuple(items), k or KS.get(name))


def parse_shard(text: str) -> tuple[int, int]:
    """(i, n) of "i/n"; raises ConfigError unless 1 <= i <= n."""
    index, _, count = text.partition("/")
    if index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count):
        return int(index), int(count)
    raise ConfigError(f"--shard must be i/n with 1 <= i <= n, got {text!r}")
