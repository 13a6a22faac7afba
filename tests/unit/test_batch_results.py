"""The log of results: whatever happens to the process that writes it, every request has one answer in the end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ewe.errors import EWEError, InvalidRequestError
from ewe.server.batch.dispatch import answer_requests
from ewe.server.batch.requests import BatchRequest
from ewe.server.batch.result_log import Reply, ResultLog, result_line, unanswered_line

ROOT = Path(__file__).parents[2]
NAMES = [f"n{number}" for number in range(12)]
REQUESTS = [BatchRequest(custom_id=name, method="POST", url="/v1/completions", body={"prompt": name}) for name in NAMES]


class KilledError(Exception):
    """Stands for the end of the process."""


def reply(status: int = 200) -> Reply:
    return Reply(status, {"text": "ä\u2028"}, {"x-request-id": "r"})


def names_in(path: Path) -> list[str]:
    return [json.loads(line)["custom_id"] for line in path.read_bytes().splitlines()]


def run(
    path: Path, places: int = 3, stop_after: int | None = None, on_ask: Callable[[str], None] | None = None
) -> None:
    """Answers what is left; raises KilledError in the middle of a request after so many answers."""
    asked = 0

    async def answer(request: BatchRequest) -> Reply:
        nonlocal asked
        if asked == stop_after:
            raise KilledError
        asked += 1
        if on_ask is not None:
            on_ask(request.custom_id)
        await asyncio.sleep(0)
        return reply(400 if request.custom_id == "n3" else 200)

    with ResultLog(path) as log:
        asyncio.run(answer_requests(REQUESTS, answer, log, asyncio.Semaphore(places), lambda: None))


@examples(15, 40, suppress_health_check=list(HealthCheck))
@given(
    kills=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4), st.integers(0, 400)), max_size=4),
)
def test_killed_anywhere_every_request_has_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: list[tuple[int, int, int]]
) -> None:
    """After a kill the file ends with any part of one more line."""
    monkeypatch.setattr("ewe.text.append_log.os.fsync", lambda handle: None)
    path = tmp_path / "results.jsonl"
    path.unlink(missing_ok=True)
    for answers, places, torn in kills:
        with suppress(KilledError):
            run(path, places, answers)
        with path.open("ab") as file:
            file.write(result_line("torn", reply())[:-1][:torn])
    whole = set(names_in_whole_lines(path)) if path.exists() else set()
    asked: list[str] = []
    run(path, on_ask=asked.append)
    assert sorted(names_in(path)) == sorted(NAMES)
    assert sorted(asked) == sorted(set(NAMES) - whole), "what is answered is not asked again, and the rest once"
    with ResultLog(path) as log:
        assert (len(log.answered), log.completed, log.failed) == (12, 11, 1)


def names_in_whole_lines(path: Path) -> list[str]:
    content = path.read_bytes()
    return [json.loads(line)["custom_id"] for line in content[: content.rfind(b"\n") + 1].splitlines()]


@pytest.mark.slow
def test_a_process_killed_three_times_answers_every_request_once(tmp_path: Path) -> None:
    requests, results = tmp_path / "requests.jsonl", tmp_path / "results.jsonl"
    names = [f"n{number}" for number in range(300)]
    lines = [
        {"custom_id": name, "method": "POST", "url": "/v1/completions", "body": {"prompt": name}} for name in names
    ]
    requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [sys.executable, "-m", "tests.unit.batch_crash_child", str(requests), str(results)]
    asked: Counter[str] = Counter()
    counted: set[str] = set()
    for kill_after in (30, 50, 70, None):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            done = 0
            for told in child.stdout:
                if not told.startswith("done "):
                    assert told.strip() not in counted, "asked again"
                    asked[told.strip()] += 1
                    continue
                counted.add(told.split()[1])
                done += 1
                if done == kill_after:
                    child.kill()
        assert child.returncode == (0 if kill_after is None else -9)
        assert counted <= set(names_in_whole_lines(results)), "what counted is on the disk"
    assert sorted(names_in(results)) == sorted(names)
    assert set(asked) == set(names)


@pytest.mark.parametrize("content", ["notes", "notes\n", "[]\n", '{"id": "batch_req_1"}\n', '{"id": "batch_req_x", \n'])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(content)
    with pytest.raises(InvalidRequestError, match=":1 is no result of a batch; choose another"):
        ResultLog(path)
    assert path.read_text() == content


def test_two_answers_to_one_request_are_not_taken_for_a_log(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(result_line("a", reply()) + result_line("b", reply()) + result_line("a", reply()))
    with pytest.raises(InvalidRequestError, match=":3 is no result"):
        ResultLog(path)


def test_lines_have_openais_fields() -> None:
    answered, left = json.loads(result_line("a", reply(400))), json.loads(unanswered_line("b", "batch_expired", "late"))
    assert answered["response"] == {"status_code": 400, "request_id": "r", "body": {"text": "ä\u2028"}}
    assert (answered["custom_id"], answered["error"]) == ("a", None)
    assert (left["custom_id"], left["response"], left["error"]) == (
        *("b", None),
        {"code": "batch_expired", "message": "late"},
    )
    assert answered["id"] != left["id"]
    assert answered.keys() == left.keys() == {"id", "custom_id", "response", "error"}


def test_results_that_come_together_share_a_sync_and_count_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    log = ResultLog(tmp_path / "results.jsonl")
    has_all = threading.Event()

    def sync(handle: int) -> None:
        syncs.append(len(log.answered))
        assert has_all.wait(60)

    async def tell() -> None:
        has_all.set()

    async def add_all() -> None:
        await asyncio.gather(*(log.add(name, reply()) for name in NAMES), tell())

    monkeypatch.setattr("ewe.text.append_log.os.fsync", sync)
    with log:
        asyncio.run(add_all())
    assert syncs[0] == 0
    assert len(syncs) <= 2  # what came while the first was being written needs one more
    assert sorted(names_in(log.path)) == sorted(NAMES)


def test_a_full_disk_ends_the_run_and_nothing_follows_half_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    syncs = 0

    def fail_later(handle: int) -> None:
        nonlocal syncs
        syncs += 1
        if syncs > 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("ewe.text.append_log.os.fsync", fail_later)
    with pytest.raises(EWEError, match="No space left on device"):
        run(path, places=1)
    held = path.read_bytes()
    assert 2 <= held.count(b"\n") <= 3
    monkeypatch.undo()
    run(path)
    assert path.read_bytes().startswith(held)
    assert sorted(names_in(path)) == sorted(NAMES)


def test_no_more_are_under_way_than_there_are_places(tmp_path: Path) -> None:
    now = most = 0

    async def answer(request: BatchRequest) -> Reply:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return reply()

    async def two_batches() -> None:
        places = asyncio.Semaphore(3)
        with ResultLog(tmp_path / "a") as one, ResultLog(tmp_path / "b") as other:
            await asyncio.gather(
                *(answer_requests(REQUESTS, answer, log, places, lambda: None) for log in (one, other))
            )
            assert len(one.answered) == len(other.answered) == 12

    asyncio.run(asyncio.wait_for(two_batches(), 60))
    assert most == 3


def test_a_failed_batch_gives_its_places_back(tmp_path: Path) -> None:
    async def fail(request: BatchRequest) -> Reply:
        raise KilledError

    async def run_both() -> None:
        places = asyncio.Semaphore(4)
        with ResultLog(tmp_path / "a") as log:
            with pytest.raises(KilledError):
                await answer_requests(REQUESTS, fail, log, places, lambda: None)
            await asyncio.sleep(0)
            for _ in range(4):
                await asyncio.wait_for(places.acquire(), 1)

    asyncio.run(asyncio.wait_for(run_both(), 60))


def test_requests_are_read_beside_the_event_loop_and_not_before_there_is_a_place(tmp_path: Path) -> None:
    """A line may take long to parse, and many large ones fill the memory."""
    read: list[threading.Thread] = []
    done = 0

    def reading() -> Iterator[BatchRequest]:
        for request in REQUESTS:
            read.append(threading.current_thread())
            yield request

    async def answer(request: BatchRequest) -> Reply:
        nonlocal done
        assert len(read) - done <= 3
        await asyncio.sleep(0.001)
        done += 1
        return reply()

    with ResultLog(tmp_path / "a") as log:
        asyncio.run(answer_requests(reading(), answer, log, asyncio.Semaphore(3), lambda: None))
    assert len(read) == len(REQUESTS)
    assert threading.main_thread() not in read


@pytest.mark.parametrize("size", [0, 1 << 20])
def test_a_result_without_room_is_not_kept(tmp_path: Path, size: int) -> None:
    """size: of replies, as they tell it: large ones are written as JSON in a thread."""
    room = 1000

    def take(bytes_: int) -> bool:
        nonlocal room
        if bytes_ > room:
            return False
        room -= bytes_
        return True

    async def answer(request: BatchRequest) -> Reply:
        return Reply(200, {"text": "x" * (900 if request.custom_id == "n1" else 200)}, {}, size)

    log = ResultLog(tmp_path / "a", take)
    with log:
        asyncio.run(answer_requests(REQUESTS, answer, log, asyncio.Semaphore(1), lambda: None))
    assert names_in(log.path) == ["n0", "n2"]
    assert log.answered == {"n0", "n2"}
    assert log.path.stat().st_size == log.size == 1000 - room
    assert ResultLog(log.path).size == log.size


def test_an_output_that_is_no_file_is_refused_unread() -> None:
    with pytest.raises(InvalidRequestError, match="is no file; choose another --output"):
        ResultLog(Path("/dev/zero"))
