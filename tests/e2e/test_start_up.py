"""What starting imports, and in which order things are refused; each test is one fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CONFIG = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32},
    **{"intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 4096},
}
HEAVY = """
import sys
def heavy():
    names = ("torch", "transformers", "sentence_transformers", "faiss", "ewe.engine.models.loader")
    return [name for name in names if name in sys.modules]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that needs no weights."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def run(code: str, *arguments: object) -> Any:
    """What a fresh interpreter prints as JSON on the last line."""
    command = [sys.executable, "-c", HEAVY + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


WRONG = """
import json, sys
from ewe import LLM
from ewe.errors import EWEError

refused = {}
def refuse(name, **wrong):
    try:
        LLM(**{"model": sys.argv[1], **wrong})
    except EWEError as error:
        refused[name] = [str(error), heavy()]

dummy = {"model": {"load_format": "dummy"}, "cache": {"num_blocks": 8}}
passages = sys.argv[2]
refuse("setting", config={"memory": {"units": 3}})
refuse("model", model="/nowhere/model")
refuse("weights", model=sys.argv[3])
refuse("datastore", config=dummy, datastore="/nowhere/passages")
refuse("datastore object", config=dummy, datastore=7)
refuse("verifier", config=dummy, datastore=passages, verifier="unheard-of")
refuse("judge", config={**dummy, "verification": {"judge": "/nowhere/judge"}}, datastore=passages, verifier="claims")
refuse("encoder", config={**dummy, "retrieval": {"retriever": "dense", "encoder": "/nowhere/encoder"}},
       datastore=passages)
refuse("units", config={**dummy, "memory": {"precomputed": "/nowhere/units"}})
refuse("memories", config=dummy, longterm=7)
refuse("device", config={"model": {"load_format": "dummy", "device": "abacus"}})
print(json.dumps(refused))
"""


def test_what_is_wrong_is_refused_before_torch_is_imported(model: Path) -> None:
    passages = model.with_name("passages.jsonl")
    passages.write_text('{"id": "a", "text": "The bridge is long."}\n')
    refused = run(WRONG, model, passages, model.parent.parent)
    assert {name: heavy for name, (_, heavy) in refused.items() if heavy} == {"device": ["torch"]}
    assert len(refused) == 11
    for name, said in {
        **{"setting": "memory.units", "model": "/nowhere/model", "datastore": "/nowhere/passages"},
        **{"verifier": "unheard-of", "judge": "/nowhere/judge", "encoder": "/nowhere/encoder", "device": "abacus"},
        **{"units": "/nowhere/units", "weights": "config.json"},
    }.items():
        assert said in refused[name][0]


PLAIN = """
import json, sys
from ewe import LLM

imported = heavy()
steps = []
settings = {"model": {"load_format": "dummy"}, "cache": {"num_blocks": 8}}
with LLM(model=sys.argv[1], config=settings, on_load=lambda step: steps.append(str(step))):
    ours = sorted(name for name in sys.modules if name.partition(".")[0] == "ewe")
print(json.dumps([imported, ours, steps]))
"""


def test_a_plain_engine_loads_nothing_of_what_it_has_not(model: Path) -> None:
    imported, ours, steps = run(PLAIN, model)
    assert imported == []
    packages = {name.split(".")[1] for name in ours if "." in name}
    others = {"agent", "cli", "evaluation", "longterm", "retrieval", "server", "verification"}
    assert not packages & others
    assert not any(name.startswith("ewe.engine.distributed") for name in ours)
    assert len(ours) <= 164, ours
    assert steps == ["importing torch and transformers", "making random weights", "allocating the KV pool"]


COMMANDS = """
import json, sys
from typer.testing import CliRunner
from ewe.cli.main import app

found, for_help = [], None
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, arguments)
    found.append([result.exit_code, result.output, heavy()])
    if for_help is None:
        for_help = [name for name in ("numpy", "nupunkt") if name in sys.modules]
import ewe
ewe.Memory("http://127.0.0.1:9")
client = heavy()
import ewe.server.app, ewe.server.process
print(json.dumps([found, for_help, client, heavy()]))
"""


def test_commands_that_run_no_model_clients_and_the_server_import_no_torch(tmp_path: Path) -> None:
    store, notes, answer = tmp_path / "store", tmp_path / "notes.txt", tmp_path / "answer.txt"
    notes.write_text("The old bridge over the Lind was built in 1932.\n")
    answer.write_text("Luran Holmer was born in 1841.\n")
    settings = tmp_path / "settings.yaml"
    settings.write_text("datastore: builtin\nserver: {port: 0}\n")
    bm25 = ["--set", "retrieval.retriever=bm25"]
    ending_well = [
        ["--help"],
        ["serve", "--help"],
        ["validate", settings],
        ["index", "build", notes, "--out", store, *bm25],
        ["index", "search", store, "old bridge", *bm25],
        ["verify", answer, "--datastore", store, "--set", "verifier=builtin", *bm25],
    ]
    refused = [
        ["serve", "/nowhere/model", "--datastore", store],
        ["serve", "--set", "memory.units=3"],
        ["generate", "Who?", "--datastore", "/nowhere/store", "--model", "builtin"],
        ["generate", "Who?", "--datastore", store, "--verifier", "claims", "--set", "verification.judge=./nowhere"],
        ["verify", answer, "--datastore", store, "--judge", "./nowhere", *bm25],
    ]
    found, for_help, client, server = run(
        COMMANDS, json.dumps([[str(part) for part in command] for command in ending_well + refused])
    )
    assert [heavy for _, _, heavy in found] == [[]] * len(found)
    assert for_help == client == []
    assert server == [], "its address is printed before what takes long is imported"
    assert [code for code, _, _ in found] == [0] * len(ending_well) + [2] * len(refused), found
    assert all(command in found[0][1] for command in ("generate", "collect-env"))
    assert "The old bridge over the Lind" in found[4][1]
    assert "1 claim: 1" in found[5][1]
    assert "phase reading settings\nmodel /nowhere/model, datastore" in found[6][1]
    assert "./nowhere" in found[-1][1]


MAIN = """
import json, sys
import ewe.cli.main
print(json.dumps([name for name in ("asyncio", "psutil", "sqlite3", "ewe.evaluation.world", "ewe.server.batch")
    if name in sys.modules]))
"""


def test_judge_encoder_and_memories_of_the_package_import_torch_alone(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="ewe-engine[dense] is not installed")
    passages, answer, memories = tmp_path / "passages.jsonl", tmp_path / "answer.txt", tmp_path / "memories"
    passages.write_text('{"id": "a", "text": "The old bridge over the Lind was built in 1932."}\n')
    answer.write_text("The old bridge over the Lind was built in 1932.\n")
    commands = [
        ["verify", answer, "--datastore", passages],
        ["memory", "add", memories, "I live in Porto."],
        ["memory", "add", memories, "I moved to Bergen."],
        ["memory", "search", memories, "Where do I live?"],
    ]
    found, *_ = run(COMMANDS, json.dumps([[str(part) for part in command] for command in commands]))
    assert [code for code, _, _ in found] == [0] * len(commands), found
    assert "1 supported" in found[0][1]
    assert [heavy for _, _, heavy in found] == [["torch", "faiss"]] * len(commands)


def test_a_command_loads_nothing_of_what_others_need() -> None:
    assert run(MAIN) == []
