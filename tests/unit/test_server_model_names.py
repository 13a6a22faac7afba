"""What clients may call a model, and that nobody is told where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.errors import ConfigError
from ewe.server.engine_client.served_models import ModelNames
from ewe.server.settings import ServerSettings, resolve_settings


@pytest.mark.parametrize(
    ("given", "listed"),
    [("HuggingFaceTB/SmolLM2", ("HuggingFaceTB/SmolLM2", "SmolLM2")), ("builtin", ("builtin",))],
)
def test_a_hub_id_and_its_last_part_are_names(given: str, listed: tuple[str, ...]) -> None:
    names = ModelNames(given)
    assert names.listed == listed
    assert all(name in names for name in listed)
    assert "HuggingFaceTB" not in names


def test_a_folder_is_listed_by_its_last_part_and_taken_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "secret" / "SmolLM2"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    for given in (str(folder), f"{folder}/", "."):
        names = ModelNames(given)
        assert names.listed == ("SmolLM2",)
        assert given in names
        assert str(tmp_path) not in names


def test_names_that_are_served_replace_the_models_own() -> None:
    names = ModelNames("a/b", ("gpt-4", "gpt-4o", "gpt-4"))
    assert names.listed == ("gpt-4", "gpt-4o")
    assert "a/b" not in names
    assert "b" not in names


def test_an_adapter_is_a_name_of_its_own() -> None:
    names = ModelNames("a/b", ("gpt",), {"law": "somewhere"})
    assert [names.adapter(name) for name in ("law", "gpt", None)] == ["law", "", ""]
    assert "law" in names
    assert names.listed == ("gpt",)
    with pytest.raises(ConfigError, match="the model itself is called 'b'"):
        ModelNames("a/b", adapters=["b"])


def test_the_setting_takes_one_name_or_several_from_everywhere(tmp_path: Path) -> None:
    assert ServerSettings.from_mapping({"served_model_name": "a"}).served_model_name == ("a",)
    file = tmp_path / "a.yaml"
    file.write_text("server: {served_model_name: [a, b]}\n")
    assert resolve_settings(None, file, {}, [])[1].served_model_name == ("a", "b")
    for value, names in (("[a, b]", ("a", "b")), ("a", ("a",))):
        environ = {"EWE_ENGINE_SERVER__SERVED_MODEL_NAME": value}
        assert resolve_settings(None, None, environ, [])[1].served_model_name == names
