"""What the pages show: Python that compiles, commands, options, settings, files and make targets that exist.

tests/e2e/test_docs_snippets.py runs the Python.
"""

import ast
import importlib
import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel
from typer.main import get_command

from ewe.cli.main import app
from ewe.config import Config
from ewe.evaluation.systems import read_sweep
from ewe.server.settings import ServerSettings, resolve_settings

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FAMILIES = re.compile(r"<!-- families:begin -->\n(.*)\n<!-- families:end -->", re.DOTALL)
GROUPS = {name for name, field in Config.model_fields.items() if isinstance(field.default, BaseModel)}
# `group.name`, `group.name: value` or `group.name=value`, in running text and tables.
SETTING = re.compile(rf"`({'|'.join(GROUPS)})\.(\w+)(?:(?:: |=)([\w.|]+))?`")
FILE = re.compile(r"`((?:ewe|kernels|benchmarks|scripts|tests|configs|docs)/[\w./-]+)`")
DOTTED = re.compile(r"`(ewe(?:\.\w+){2,})")  # a module, or what is in one


def blocks(language: str) -> list[tuple[str, str]]:
    return [(page.name, body) for page in PAGES for kind, body in BLOCK.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_compiles_and_imports_what_exists(page: str, code: str) -> None:
    for node in ast.walk(ast.parse(code, page)):
        if isinstance(node, ast.ImportFrom):
            name = str(node.module)
            load = importlib.import_module if name.partition(".")[0] == "ewe" else pytest.importorskip
            module = load(name)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def shell_lines(start: str) -> list[str]:
    whole = [line for _, body in blocks("sh") for line in body.replace("\\\n", " ").splitlines()]
    lines = [re.sub(r"^(\w+=\S+ )+", "", line.split("  #")[0].strip()) for line in whole]
    return [line for line in lines if line.startswith(start)]


root_command = cache(lambda: get_command(app))


@pytest.mark.parametrize("line", shell_lines("ewe "))
def test_commands_and_their_options_exist(line: str) -> None:
    words = line.split()[1:]
    command = root_command()
    while words and hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    for setting in re.findall(r"--set (\S+=\S*)", line):
        if command.name == "serve":
            resolve_settings(None, None, {}, [setting])
        else:
            Config().override([setting])


@pytest.mark.parametrize("line", shell_lines("make "))
def test_make_targets_exist(line: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [word for word in line.split()[1:] if "=" not in word]
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


@pytest.mark.parametrize("line", shell_lines("python -m "))
def test_modules_exist(line: str) -> None:
    assert find_spec(line.split()[2]) is not None  # importing it may need an extra


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_and_files_named_in_the_text_exist(page: Path) -> None:
    text = page.read_text()
    for group, name, value in SETTING.findall(text):
        known = type(Config.model_fields[group].default).model_fields
        assert name in known or re.search(rf"`{group}\.{name}\*", text), f"{group}.{name}"
        for one in filter(None, value.split("|")):
            Config().override([f"{group}.{name}={one}"])
    for name in re.findall(r"`server\.(\w+)", text):
        assert name in ServerSettings.model_fields, name
    for file in FILE.findall(text):
        assert (ROOT / file).exists(), file
    for name in DOTTED.findall(text):
        assert is_in_the_package(name), name


def is_in_the_package(name: str) -> bool:
    """Read, not imported: some modules need an extra."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        place = ROOT.joinpath(*parts[:end])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.exists():
                return end == len(parts) or re.search(rf"\b{parts[end]}\b", file.read_text()) is not None
    return False


@pytest.mark.parametrize(("page", "body"), blocks("yaml"))
def test_yaml_is_settings_a_sweep_or_a_table(page: str, body: str, tmp_path: Path) -> None:
    (tmp_path / "page.yaml").write_text(body)
    read = yaml.safe_load(body)
    if read.keys() <= Config.model_fields.keys():
        Config.from_yaml(tmp_path / "page.yaml")
    elif "points" in read:
        assert len(read_sweep(tmp_path / "page.yaml").systems) > 1
    else:
        assert page in ("datastores.md", "server.md", "deployment.md"), "no sources, scrape job or manifest"


@pytest.mark.parametrize("line", [line for _, body in blocks("json") for line in body.splitlines()])
def test_json_is_json(line: str) -> None:
    json.loads(line)


def test_the_named_families_are_those_that_are_tested() -> None:
    tested = [*keys_of("families.py", "CONFIGS"), *keys_of("more_families.py", "MORE")]
    [listed] = FAMILIES.findall((ROOT / "docs" / "models-supported.md").read_text())
    assert listed.replace("\n", " ").split(", ") == [name for name in tested if "/" not in name]


def keys_of(file: str, variable: str) -> list[str]:
    """Of a dictionary that a file of the parity tests spells out."""
    tree = ast.parse((ROOT / "tests" / "parity" / file).read_text())
    [found] = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == variable
    ]
    assert isinstance(found, ast.Dict)
    return [str(key.value) for key in found.keys if isinstance(key, ast.Constant)]
