"""Parts by name: the package's own, those of the program, those of plugin packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewe.components import make_components
from ewe.config import Config, registry
from ewe.config.registry import Registry
from ewe.errors import ConfigError
from ewe.retrieval.datastore import Datastore
from ewe.types import Passage, Verdict, VerificationRequest
from ewe.types.protocols import Verifier

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "plugins.md"
REGISTRIES = [value for value in vars(registry).values() if isinstance(value, Registry)]


def blocks(language: str) -> list[str]:
    """The code of one language in the guide, in order."""
    parts = GUIDE.read_text(encoding="utf-8").split(f"```{language}\n")[1:]
    return [part.split("```")[0] for part in parts]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The guide's package, installed: its name in the settings."""
    import tomllib

    (code, *_), [project] = blocks("python"), blocks("toml")
    (tmp_path / "strict_verifier.py").write_text(code)
    info = tmp_path / "ewe_strict-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ewe-strict\nVersion: 1.0\n")
    groups = tomllib.loads(project)["project"]["entry-points"]
    groups["ewe.judges"] = {"broken": "no_such_module:Judge"}
    groups["ewe.pipelines"] = {"drafts": "drafts:Twice"}
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items()]
    (info / "entry_points.txt").write_text("".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "strict"
    sys.modules.pop("strict_verifier", None)


def test_the_plugin_of_the_guide_verifies(plugin: str) -> None:
    config = Config().override([f"verifier={plugin}"])
    components = make_components(config, Datastore([Passage("a", "Ada Lind was born in Oslo.")]), None)
    verifier = components.verifier
    assert isinstance(verifier, Verifier)
    results = verifier.verify([VerificationRequest("", "", text) for text in ("Ada Lind was born in Oslo.", "No.")])
    assert [result.verdict for result in results] == [Verdict.SUPPORTED, Verdict.REFUTED]


@pytest.mark.usefixtures("plugin")
def test_a_plugin_that_cannot_be_loaded_is_named_with_its_package() -> None:
    assert "broken" in registry.JUDGES
    with pytest.raises(ConfigError, match="judge 'broken' of the package ewe-strict cannot be loaded: ModuleNotFound"):
        registry.JUDGES.get("broken")


@pytest.mark.usefixtures("plugin")
def test_an_unknown_name_lists_plugins_too() -> None:
    with pytest.raises(ConfigError, match=r"did you mean strict\? known: claims, builtin, strict, auto, none"):
        Config().override(["verifier=stritc"])


def test_a_name_that_was_removed_says_what_to_use() -> None:
    with pytest.raises(ConfigError, match="verifier: the verifier 'values' was removed: use claims"):
        Config().override(["verifier=values"])
    for asked in (registry.VERIFIERS.get, registry.VERIFIERS.make):
        with pytest.raises(ConfigError, match="use claims"):
            asked("values")
    assert "values" not in registry.VERIFIERS.names


@pytest.mark.usefixtures("plugin")
def test_a_policy_under_the_entry_points_of_earlier_versions_says_what_to_do() -> None:
    wanted = r"policy 'drafts' is registered under ewe\.pipelines, which is gone: .* under ewe\.policies"
    with pytest.raises(ConfigError, match=wanted):
        Config().override(["policy=drafts"])


def test_a_removed_name_is_free_for_others() -> None:
    kind = Registry("colour", "ewe.no_such_group", {}, removed={"red": "blue"})
    assert kind.is_removed("red")
    kind.register("red")(dict)
    assert (kind.is_removed("red"), kind.get("red")) == (False, dict)


@pytest.mark.parametrize("kind", REGISTRIES, ids=lambda kind: kind._group)
def test_every_builtin_factory_is_there(kind: Registry) -> None:
    assert list(kind)
    for name in kind:
        assert callable(kind.get(name))


def test_a_program_registers_its_own() -> None:
    kind = Registry("part", "ewe.nothing", {"own": "collections:OrderedDict"}, ("auto",))

    @kind.register("mine")
    def make(size: int) -> list[int]:
        return [0] * size

    assert kind.names == ("own", "mine", "auto")
    assert kind.make("mine", size=2, colour="red") == [0, 0]
    assert kind.check("auto") == "auto"
    assert "auto" not in kind
    for taken in ("own", "mine"):
        with pytest.raises(ConfigError, match="already"):
            kind.register(taken)


def test_a_factory_is_handed_what_it_names() -> None:
    kind = Registry("part", "ewe.nothing", {})
    kind.register("some")(lambda judge: judge)
    kind.register("none")(lambda: "nothing")
    kind.register("all")(lambda **given: given)
    assert [kind.make(name, judge=1, device=2) for name in kind] == [1, "nothing", {"judge": 1, "device": 2}]


def test_settings_with_builtin_names_import_no_part() -> None:
    import subprocess

    code = (
        "import sys; from ewe.config import Config; Config(verifier='claims', policy='ewe');"
        "print([m for m in sys.modules if m.startswith(('ewe.verification', 'ewe.engine', 'ewe.retrieval'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
