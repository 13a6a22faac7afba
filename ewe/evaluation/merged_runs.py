"""Runs of a factuality evaluation that stand in one table: shards, models, sets."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.evaluation.factuality import Answer, Found, Preference, Record

PAPER: dict[str, Any] = json.loads((files("ewe.evaluation") / "paper.json").read_text(encoding="utf-8"))
"""The EWE paper's figures by model, policy and set; "source": where they stand."""

_SHARED = ("set", "judges")  # what all runs of a table must have in common


@dataclass(frozen=True, slots=True)
class Run:
    """The records of one file, and the settings they were made with."""

    name: str
    settings: Mapping[str, Any]
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class System:
    """A row to be: its system's name in the runs, the model, and what the runs' settings say of it."""

    name: str
    model: str
    about: Mapping[str, Any]

    @property
    def paper(self) -> Mapping[str, Any]:
        """The paper's figures for this model and policy, per set; of a sweep's points only for those that are one."""
        is_policy = not self.about["x"] or self.about["x"] == self.about["settings"].get("policy")
        if self.about["series"] or not is_policy:
            return {}
        figures: Mapping[str, Any] = PAPER.get(self.model, {}).get(self.name, {})
        return figures


def shared_settings(runs: Sequence[Run]) -> Mapping[str, Any]:
    """Those of all runs; raises InvalidRequestError where they cannot stand in one table."""
    first = runs[0]
    for run in runs[1:]:
        differing = [key for key in _SHARED if run.settings[key] != first.settings[key]]
        if differing:
            raise InvalidRequestError(
                f"{first.name} and {run.name} cannot stand in one table: they differ in {', '.join(differing)}"
            )
    return first.settings


def merged(runs: Sequence[Run]) -> tuple[dict[str, System], Found]:
    """The systems and records of all runs under the names of rows, with the model's where there are several.

    Raises InvalidRequestError for a system that the runs set differently, or that answered a prompt twice.
    """
    models = {about["settings"]["model"]["name"] for run in runs for about in run.settings["systems"].values()}
    systems: dict[str, System] = {}
    recorded = Found()
    for run in runs:
        labels = {}
        for name, about in run.settings["systems"].items():
            model = PurePath(about["settings"]["model"]["name"]).name
            labels[name] = label = f"{model} {name}" if len(models) > 1 else name
            if systems.setdefault(label, System(name, model, about)).about != about:
                raise InvalidRequestError(f"{run.name}: {label!r} has other settings than in the files before it")
        for record in run.records:
            key = labels[record.system], record.prompt
            if isinstance(record, Answer) and key in recorded.answers:
                raise InvalidRequestError(f"{run.name}: {key[0]!r} answered {key[1]!r} in a file before it already")
            recorded.add(_renamed(record, labels))
    return systems, recorded


def _renamed(record: Record, labels: Mapping[str, str]) -> Record:
    if isinstance(record, Preference):
        return replace(record, system=labels[record.system], against=labels[record.against])
    return replace(record, system=labels[record.system])
