"""Files and batches with the real openai client: what it sends, waits for and fetches; whose they are; restarts."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_rig import CHAT, PLACES, Script, Server, counts, create, ended, line, results, server
from script_rig import scripted_llm
from server_rig import ServerProcess, http, serving, wait_for

from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("multipart", reason="python-multipart is not installed")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("batches")
    keys = folder / "keys"
    keys.write_text("one\ntwo\nthree\nfour\n")
    with server(folder / "kept", api_key_file=keys, batch_bytes=1 << 20, max_per_key=PLACES) as opened:
        yield opened


def test_a_batch_from_upload_to_results(shared: Server) -> None:
    client = shared.client()
    names = [f"n{number}" for number in range(12)]
    lines = [line(name) for name in names] + [line("bad", temperature=-1)]
    batch = ended(client, create(client, lines, metadata={"for": "test"}))
    assert (batch.status, batch.metadata, batch.errors) == ("completed", {"for": "test"}, None)
    assert counts(batch) == (13, 12, 1)
    assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at < batch.expires_at
    answered = results(client, batch.output_file_id)
    assert answered.keys() == set(names)
    for name, row in answered.items():
        assert row["response"]["status_code"] == 200
        assert row["response"]["request_id"]
        assert row["error"] is None
        assert row["response"]["body"]["choices"][0]["message"]["content"] == f"say {name}"
    [refused] = results(client, batch.error_file_id).values()
    assert (refused["custom_id"], refused["response"]["status_code"]) == ("bad", 400)
    assert "temperature" in refused["response"]["body"]["error"]["message"]
    written = client.files.list(purpose="batch_output").data
    assert {file.id for file in written} >= {batch.output_file_id, batch.error_file_id}
    assert client.files.retrieve(batch.output_file_id).filename == f"{batch.id}_output.jsonl"


def test_a_line_gives_what_the_endpoint_gives(shared: Server) -> None:
    client = shared.client()
    for url, fields in (
        (CHAT, {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 5, "logprobs": True}),
        ("/v1/completions", {"prompt": ["a<|assistant|>", "b<|assistant|>"], "n": 2, "max_tokens": 3}),
        ("/v1/responses", {"input": "Hello.", "max_output_tokens": 16, "store": True}),
        ("/v1/responses", {"input": "Hello.", "max_output_tokens": 0}),
        ("/v1/embeddings", {"input": "Hello."}),
    ):
        row = json.dumps({"custom_id": "a", "method": "POST", "url": url, "body": fields})
        batch = ended(client, create(client, [row], url))
        [found] = results(client, batch.output_file_id or batch.error_file_id).values()
        direct = http.post(f"{shared.url}{url}", json=fields, headers={"authorization": "Bearer one"})
        assert found["response"]["status_code"] == direct.status_code
        assert lasting(found["response"]["body"]) == lasting(direct.json())
        assert bool(batch.output_file_id) == (direct.status_code == 200)


def test_responses_of_batches_are_stored_if_they_ask_for_it(shared: Server) -> None:
    client = shared.client()
    fields = {"input": "Hello.", "max_output_tokens": 16}
    rows = [
        json.dumps({"custom_id": name, "method": "POST", "url": "/v1/responses", "body": {**fields, **more}}) + "\n"
        for name, more in (("kept", {"store": True}), ("not", {}))
    ]
    batch = ended(client, create(client, rows, "/v1/responses"))
    found = {name: row["response"]["body"] for name, row in results(client, batch.output_file_id).items()}
    assert client.responses.retrieve(found["kept"]["id"]).id == found["kept"]["id"]
    assert found["not"]["store"] is False


def lasting(value: Any) -> Any:
    """An answer without what is another each time: ids and times."""
    if isinstance(value, list):
        return [lasting(item) for item in value]
    if isinstance(value, dict):
        changing = {"id", "created", "created_at", "completed_at", "stats"}
        return {key: lasting(item) for key, item in value.items() if key not in changing}
    return value


def test_a_file_with_bad_lines_fails_with_their_places(shared: Server) -> None:
    client = shared.client()
    batch = ended(client, create(client, [line("a"), "{\n", line("a"), line("b", url="/v1/completions")]))
    assert batch.status == "failed"
    assert batch.failed_at
    told = [(error.line, error.code, error.param) for error in batch.errors.data]
    assert told == [
        *((2, "invalid_json_line", None), (3, "duplicate_custom_id", "custom_id"), (4, "mismatched_url", "url")),
    ]
    assert batch.output_file_id is None
    assert batch.error_file_id is None


def test_lists_are_paged_and_show_a_key_its_own_things_only(shared: Server) -> None:
    two, three = shared.client("two"), shared.client("three")
    made = [create(two, [line("a")]).id for _ in range(5)]
    for batch_id in made:
        ended(two, two.batches.retrieve(batch_id))
    assert [batch.id for batch in two.batches.list(limit=2)] == made[::-1], "the client follows the pages"
    page = two.batches.list(limit=2)
    assert ([batch.id for batch in page.data], page.has_more) == (made[:2:-1], True)
    page = two.batches.list(limit=3, after=made[3])
    assert ([batch.id for batch in page.data], page.has_more) == (made[2::-1], False)
    files = [file.id for file in two.files.list(order="asc", limit=3)]
    assert files == sorted(files)
    assert len(files) == 10
    assert len(two.files.list(purpose="batch").data) == 5
    assert three.batches.list().data == three.files.list().data == []
    batch = two.batches.retrieve(made[0])
    for ask in (
        lambda: three.batches.retrieve(batch.id),
        lambda: three.batches.cancel(batch.id),
        lambda: three.files.retrieve(batch.output_file_id),
        lambda: three.files.content(batch.output_file_id),
        lambda: three.files.delete(batch.input_file_id),
        lambda: create_from(three, batch.input_file_id),
        lambda: two.files.content("../lock"),
        lambda: two.files.content(batch.id),
    ):
        with pytest.raises(openai.NotFoundError):
            ask()
    shown = http.get(f"{shared.url}/v1/batches", headers={"authorization": "Bearer two"}).text
    assert "key" not in shown
    assert http.get(f"{shared.url}/v1/batches").status_code == 401


def create_from(client: Any, file_id: str) -> Any:
    return client.batches.create(input_file_id=file_id, endpoint=CHAT, completion_window="24h")


def test_cancelling_keeps_what_is_answered_and_names_what_is_not(shared: Server) -> None:
    client = shared.client()
    shared.script.gate.clear()
    batch = create(client, [line("first", "wait 1")] + [line(f"n{number}") for number in range(60)])
    wait_for(lambda: client.batches.retrieve(batch.id).status == "in_progress", "it begins")
    with pytest.raises(openai.BadRequestError, match="cancel it first"):
        client.files.delete(batch.input_file_id)
    wait_for(lambda: shared.app.state.service.admission.num_inside, "it is asked")
    told = client.batches.cancel(batch.id)
    assert told.status == "cancelling"
    shared.script.gate.set()
    batch = ended(client, batch)
    assert (batch.status, bool(batch.cancelled_at)) == ("cancelled", True)
    assert client.batches.cancel(batch.id).status == "cancelled", "once more does nothing"
    answered, left = results(client, batch.output_file_id), results(client, batch.error_file_id)
    assert "first" in answered, "what was under way is answered"
    assert len(answered) + len(left) == 61
    assert answered.keys().isdisjoint(left)
    assert len(left) > 40
    assert {row["error"]["code"] for row in left.values()} == {"batch_cancelled"}
    assert counts(batch) == (61, len(answered), 0)
    assert client.files.delete(batch.input_file_id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.content(batch.input_file_id)


def test_a_batch_expires_with_what_it_has(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = shared.client()
    shared.script.gate.clear()
    batch = create(client, [line("first", "wait 1")] + [line(f"n{number}") for number in range(60)])
    wait_for(lambda: shared.app.state.service.admission.num_inside, "it is asked")
    monkeypatch.setattr(shared.app.state.batches, "now", lambda: time.time() + 25 * 3600)
    shared.script.gate.set()
    batch = ended(client, batch)
    assert (batch.status, batch.expired_at > batch.expires_at) == ("expired", True)
    left = results(client, batch.error_file_id)
    assert {row["error"]["code"] for row in left.values()} == {"batch_expired"}
    assert len(left) + batch.request_counts.completed == 61


def test_requests_of_batches_never_wait_in_the_queue_of_others(shared: Server, monkeypatch: Any) -> None:
    client, admission = shared.client(), shared.app.state.service.admission
    seen: list[int] = []
    enter = admission.enter
    monkeypatch.setattr(
        admission, "enter", lambda *args, **kwargs: (enter(*args, **kwargs), seen.append(admission.num_inside))
    )
    shared.script.gate.clear()
    batches = [create(client, [line(f"n{number}", f"wait {number}") for number in range(20)]) for _ in range(2)]
    wait_for(lambda: admission.num_inside == PLACES, "the batches take all places")
    shared.script.gate.set()
    assert [ended(client, batch).status for batch in batches] == ["completed", "completed"]
    assert max(seen) == PLACES, "eight are under way, and four places are there"


def test_a_keys_batches_leave_it_its_own_requests(shared: Server) -> None:
    client = shared.client()
    shared.script.gate.clear()
    batch = create(client, [line(f"n{number}", f"wait {number}") for number in range(PLACES + 2)])
    wait_for(lambda: shared.app.state.service.admission.num_inside == PLACES, "the batch takes all places")
    asking = threading.Thread(target=lambda: answers.append(chat(client)))
    answers: list[str] = []
    asking.start()
    wait_for(lambda: shared.app.state.service.admission.num_inside == PLACES + 1, "a request of the same key waits")
    shared.script.gate.set()
    asking.join(60)
    assert answers == ["Hello."]
    assert ended(client, batch).status == "completed"


def chat(client: Any) -> str:
    answer = client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "Hello."}])
    return str(answer.choices[0].message.content)


def test_what_cannot_be_kept_is_refused(shared: Server) -> None:
    client = shared.client("four")
    file = client.files.create(file=("a.jsonl", b"x" * 900_000), purpose="batch")
    with pytest.raises(openai.BadRequestError, match="more than 1048576 bytes"):
        client.files.create(file=("b.jsonl", b"x" * 200_000), purpose="batch")
    client.files.delete(file.id)
    for purpose in ("fine-tune", "batch_output"):
        with pytest.raises(openai.BadRequestError, match="purpose"):
            client.files.create(file=("b.jsonl", b"x"), purpose=purpose)
    file = client.files.create(file=("../../b.jsonl", line("a").encode()), purpose="batch")
    assert file.filename == "../../b.jsonl"
    for changed in ({"endpoint": "/v1/models"}, {"completion_window": "1h"}, {"metadata": {"a": "b" * 513}}):
        wanted: Any = {"input_file_id": file.id, "endpoint": CHAT, "completion_window": "24h", **changed}
        with pytest.raises(openai.BadRequestError, match=next(iter(changed))):
            client.batches.create(**wanted)


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    with scripted_llm("none", Script()) as llm, serving(create_app(llm, ServerSettings())) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="one", max_retries=0)
        with pytest.raises(openai.NotFoundError, match=r"server\.batch_folder"):
            client.batches.list()


def test_a_server_that_starts_again_goes_on(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(60)]
    with server(tmp_path) as first:
        first.script.gate.clear()
        batch = create(
            first.client(), [line(name, "wait" if number >= 20 else "") for number, name in enumerate(names)]
        )
        wait_for(lambda: counts(first.client().batches.retrieve(batch.id))[1] >= 10, "some are answered")
    before = (tmp_path / "batches" / f"{batch.id}.log").read_bytes()
    done = set(before[: before.rfind(b"\n") + 1].splitlines())
    assert 10 <= len(done) < 60
    (tmp_path / "files" / "file-0abc").write_bytes(b"a file that was half sent")
    (tmp_path / "files" / "notes.txt").write_bytes(b"not the server's")
    with server(tmp_path) as second:
        client = second.client()
        batch = ended(client, batch)
        assert (batch.status, counts(batch)) == ("completed", (60, 60, 0))
        assert results(client, batch.output_file_id).keys() == set(names)
        assert done <= set(client.files.content(batch.output_file_id).content.splitlines()), "none is asked again"
    assert sorted(path.name for path in (tmp_path / "batches").iterdir()) == [f"{batch.id}.json"]
    assert not (tmp_path / "files" / "file-0abc").exists()
    assert (tmp_path / "files" / "notes.txt").exists()


@pytest.mark.slow
def test_a_server_killed_with_9_goes_on(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(200)]
    options = ("--policy", "plain", "--set", f"server.batch_folder={tmp_path}")
    with ServerProcess(*options) as process:
        client = openai.OpenAI(base_url=f"{process.wait_until_ready()}/v1", api_key="none")
        batch = create(client, [line(name, max_tokens=2) for name in names])
        wait_for(lambda: counts(client.batches.retrieve(batch.id))[1] >= 20, "some are answered")
        process.stop(signal.SIGKILL)
    log = (tmp_path / "batches" / f"{batch.id}.log").read_bytes()
    done = set(log[: log.rfind(b"\n") + 1].splitlines())
    assert 20 <= len(done) < 200
    with ServerProcess(*options) as process:
        client = openai.OpenAI(base_url=f"{process.wait_until_ready()}/v1", api_key="none")
        batch = ended(client, batch)
        assert counts(batch) == (200, 200, 0)
        assert results(client, batch.output_file_id).keys() == set(names)
        assert done <= set(client.files.content(batch.output_file_id).content.splitlines())
        assert process.stop(signal.SIGTERM) == 0, process.output
        assert "Traceback" not in process.output
