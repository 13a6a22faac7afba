"""The names that settings accept stand in one place, and the docs list the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ewe.config import Config, registry
from ewe.config import setting_names as vocabulary
from ewe.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs"


def test_the_docs_list_the_same_names() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8").partition("### Names")[2].partition("###")[0]
    rows = dict(re.findall(r"^\| `(datastore|verifier|policy|verification\.judge)` \| (.*) \|$", text, re.M))
    known = {
        "datastore": vocabulary.DATASTORES,
        "verifier": registry.VERIFIERS.names,
        "policy": registry.POLICIES.names,
        "verification.judge": registry.JUDGES.names,
    }
    assert {name: row.replace("`", "") for name, row in rows.items()} == {
        name: ", ".join(names).replace("`", "") for name, names in known.items()
    }


@pytest.mark.parametrize("name", registry.VERIFIERS.names)
def test_every_verifier_can_be_set_from_text(name: str) -> None:
    assert Config().override([f"verifier={name}"]).verifier == name


def test_null_is_none() -> None:
    config = Config().override(["verifier=null", "datastore=none"])
    assert (config.verifier, config.datastore) == ("none", None)


@pytest.mark.parametrize(
    "assignment", ["verifier=klaims", "policy=ewes", "retrieval.retriever=bm52", "feedback.mode=x"]
)
def test_a_wrong_value_is_answered_with_all_right_ones(assignment: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config().override([assignment])
    name = assignment.partition("=")[0]
    assert re.match(rf"{re.escape(name)}: unknown \w+ '\w+'; (did you mean \w+\? )?known: \w+, ", str(caught.value))


def test_the_nearest_name_comes_first() -> None:
    assert vocabulary.unknown("judge", "biultin", registry.JUDGES.names).startswith(
        "unknown judge 'biultin'; did you mean builtin? known: builtin, base, reader, writer, auto, a model"
    )


@pytest.mark.parametrize("path", ["/nope", "./builtni", "data/none"])
def test_a_path_is_not_taken_for_a_misspelt_name(path: str) -> None:
    assert vocabulary.hint(path, vocabulary.DATASTORES).startswith("known: builtin, ")
