"""What is under other terms than the code, or made from others' work, says so, with its license beside it."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
NAMED = set(re.findall(r"^(?!EWE|Data)(\S+/\S+)$", NOTICE, re.M))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
KINDS = (".jsonl", ".safetensors", ".gguf", ".parquet", ".csv")
OURS = {  # written for this, about nobody who exists
    *("benchmarks/verdicts_near.jsonl", "benchmarks/verdicts_omissions.jsonl", "benchmarks/verdicts_told.jsonl"),
    *("scripts/judge_training/written/entailment.jsonl", "scripts/judge_training/written/questions.jsonl"),
    "scripts/judge_training/written/claims_twins.jsonl",
    *("ewe/evaluation/doctor.jsonl", "benchmarks/longterm_changes.jsonl", "benchmarks/longterm_turns.jsonl"),
    *("benchmarks/longterm_changes_tuned.jsonl", "benchmarks/longterm_changes_fresh.jsonl"),
    *("benchmarks/longterm_changes_blind.jsonl", "benchmarks/longterm_histories.jsonl"),
    *("benchmarks/longterm_profiles.jsonl", "scripts/change_training/written/profiles.jsonl"),
    *(
        f"scripts/change_training/written/{name}.jsonl"
        for name in (
            *("pairs_everyday", "pairs_families", "pairs_long_turns", "pairs_plain", "pairs_students"),
            *("pairs_travellers_and_elders", "pairs_work", "pairs_named_values", "histories_chats"),
            *("histories_with_an_assistant", "histories_of_friends_and_notes", "sets_body_and_leisure", "sets_home"),
            *("sets_home_and_money", "sets_work_and_health", "sets_work_and_things"),
            *("sets_money_and_papers", "sets_bodies_and_people", "sets_turns_and_facts"),
        )
    ),
    *("benchmarks/longterm_turns_tuned.jsonl", "benchmarks/longterm_turns_fresh.jsonl"),
}


def data_files() -> set[str]:
    found = {path for part in ("ewe", "benchmarks", "scripts", "configs", "docs") for path in (ROOT / part).rglob("*")}
    is_data = (path for path in found if path.suffix in KINDS or path.name == "tokenizer.json")
    return {str(path.relative_to(ROOT)) for path in is_data}


def test_all_data_and_weights_are_in_the_notice() -> None:
    assert data_files() - OURS == NAMED


def test_texts_of_licenses_lie_beside_what_they_are_about() -> None:
    texts = {
        str(path.relative_to(ROOT))
        for part in ("ewe", "benchmarks", "scripts")
        for path in (ROOT / part).rglob("LICENSE-*")
    }
    by_sa = {name for name in texts if name.endswith("LICENSE-CC-BY-SA-4.0")}
    assert {str(Path(name).parent) for name in by_sa} == {
        *("ewe/retrieval/wikipedia_sample", "ewe/verification/judges/writer_claims"),
        *("scripts/judge_training/written", "benchmarks"),
    }
    assert len({hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in by_sa}) == 1
    text = (ROOT / min(by_sa)).read_text(encoding="utf-8")
    assert text.startswith("Attribution-ShareAlike 4.0 International\n")
    assert "Section 8 -- Interpretation." in text
    assert texts - by_sa == {"ewe/verification/judges/builtin_model/LICENSE-MINILM"}


def test_the_wheel_brings_them() -> None:
    shipped = {path.relative_to(ROOT) for pattern in PROJECT["license-files"] for path in ROOT.glob(pattern)}
    assert {Path("LICENSE"), Path("NOTICE")} <= shipped
    assert {path.relative_to(ROOT) for path in (ROOT / "ewe").rglob("LICENSE-*")} <= shipped
    assert PROJECT["license"] == "Apache-2.0 AND CC-BY-SA-4.0 AND MIT"


def test_weights_have_a_card() -> None:
    for name in NAMED:
        if name.endswith(".safetensors"):
            assert (ROOT / name).with_name("README.md").is_file(), name
