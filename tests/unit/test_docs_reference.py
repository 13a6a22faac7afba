"""docs/reference.md and docs/streaming.md name what the code has: settings, defaults, fields, commands, events."""

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from ewe import types
from ewe.cli.main import app
from ewe.config import Config
from ewe.text import check_result as checked
from ewe.types.sampling_params import SamplingParams

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"`([^`]+)`")
ITEM = re.compile(r"- (`[^`]+`(?:, `[^`]+`)*)(?: \((`[^`]*`)\))?: (.*)")
GROUPS = [name for name, field in Config.model_fields.items() if isinstance(field.default, BaseModel)]


def tables(page: str) -> dict[str, list[list[str]]]:
    """Per heading, the rows of its table, without the header, or of its list: names, perhaps the default, meaning."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in (ROOT / "docs" / page).read_text().splitlines():
        if line.startswith("#"):
            rows = found.setdefault(line.strip("# `"), [])
        elif line.startswith("| `"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif item := ITEM.match(line):
            rows.append([part for part in item.groups() if part is not None])
    return found


REFERENCE = tables("reference.md")


def names(heading: str) -> list[str]:
    return [name for row in REFERENCE[heading] for name in NAME.findall(row[0])]


def plain(value: Any) -> Any:
    """A default as YAML would read it."""
    if isinstance(value, BaseModel):
        return {key: plain(item) for key, item in value}
    if isinstance(value, (tuple, list)):
        return list(value)
    return dict(value) if isinstance(value, dict) else value


def documented(cell: str) -> Any:
    text = cell.strip("`")
    not_yaml = {"": "", "()": [], "off": "off", "{title}: {text}": "{title}: {text}"}
    return not_yaml[text] if text in not_yaml else yaml.safe_load(text)


def documented_defaults(heading: str) -> dict[str, Any]:
    """The default of each name; names that share a row share its default."""
    return {name: documented(row[1]) for row in REFERENCE[heading] for name in NAME.findall(row[0])}


@pytest.mark.parametrize("group", ["Top level", *GROUPS])
def test_settings_and_their_defaults(group: str) -> None:
    model = Config if group == "Top level" else type(Config.model_fields[group].default)
    fields = {key: field for key, field in model.model_fields.items() if key not in GROUPS}
    defaults = {key: plain(field.get_default(call_default_factory=True)) for key, field in fields.items()}
    assert documented_defaults(group) == defaults


def test_sampling_parameters_and_their_defaults() -> None:
    defaults = {
        field.name: plain(getattr(SamplingParams(), field.name)) for field in dataclasses.fields(SamplingParams)
    }
    assert documented_defaults("SamplingParams") == defaults


@pytest.mark.parametrize(
    "result",
    [
        *(
            types.MemoryOptions,
            types.Passage,
            types.Generation,
            types.Sentence,
            types.Claim,
            types.Evidence,
            types.VerificationResult,
        ),
        *(checked.CheckedText, checked.CheckedSentence, types.GenerationStats),
    ],
)
def test_fields_of_results(result: Any) -> None:
    assert sorted(names(result.__name__)) == sorted(field.name for field in dataclasses.fields(result))


def test_commands() -> None:
    commands = {str(command.name) for command in app.registered_commands}
    commands |= {str(group.name) for group in app.registered_groups}
    assert {name.removeprefix("ewe ") for name in names("Commands")} == commands


def first_arguments(method: str) -> set[str]:
    """The literal first arguments of every call of a method of this name in the package."""
    found = set()
    for path in (ROOT / "ewe").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
            if is_call and node.args and isinstance(node.args[0], ast.Constant):
                found.add(node.args[0].value)
    return found


def test_trace_events() -> None:
    [events] = [rows for rows in tables("streaming.md").values() if [row[0] for row in rows[:1]] == ["`start`"]]
    assert {row[0].strip("`") for row in events} == first_arguments("record")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "results" / "README.md"]:
        visible = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", visible):
            if "://" not in target:
                linked = page.parent / target if target else page
                assert linked.exists(), f"{page.name}: {target}"
                assert not anchor or anchor in anchors(linked), f"{page.name}: {target}#{anchor}"


def test_every_page_is_in_the_site_and_in_its_index() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    in_site = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    in_index = re.findall(r"\]\(([^)#]+\.md)", (ROOT / "docs" / "index.md").read_text())
    assert sorted(in_site) == sorted(pages)
    assert sorted([*in_index, "index.md"]) == sorted(pages)
