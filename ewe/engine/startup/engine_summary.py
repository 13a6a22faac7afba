"""What is on in an engine, for its log, its health and its page: datastore, verifier, judge, policy, memories."""

import os
from dataclasses import dataclass
from pathlib import Path

from ewe.config.setting_names import NONE
from ewe.text.words import counted


@dataclass(frozen=True, slots=True)
class DatastoreSummary:
    """A datastore; passages: how many, None if it does not say; search: how they are found, empty if unknown."""

    name: str
    passages: int | None = None
    search: str = ""

    def __str__(self) -> str:
        size = () if self.passages is None else (counted(self.passages, "passage"),)
        more = ", ".join((*size, *((self.search,) if self.search else ())))
        return f"{self.name} ({more})" if more else self.name


@dataclass(frozen=True, slots=True)
class EngineSummary:
    """What an engine works with.

    verifier: its name, a class name for an object, or "none". judge: what claims are judged by, None where no judge is
    asked. unchecked: why sentences are not checked before they stand; empty if they are.
    """

    policy: str
    datastore: DatastoreSummary | None
    verifier: str
    judge: str | None
    unchecked: str
    longterm_memory: bool

    def __str__(self) -> str:
        verifier = f"verifier {self.verifier}" + (f" (judge {self.judge})" if self.judge else "")
        return "; ".join(
            (
                f"policy {self.policy}",
                f"datastore {self.datastore or NONE}",
                f"sentences are not checked: {self.unchecked}" if self.unchecked else verifier,
                f"long-term memory {'on' if self.longterm_memory else 'off'}",
            )
        )


def public_name(name: str) -> str:
    """A model, judge or datastore as others may know it: without its place on this machine or in this network."""
    if name.startswith("openai:"):
        return name.rpartition("@")[0] or name
    if "://" in name or name.startswith("milvus+file:"):
        return name.rpartition("/")[2]
    path = Path(name).expanduser()
    return Path(os.path.abspath(path)).name if path.exists() else name
