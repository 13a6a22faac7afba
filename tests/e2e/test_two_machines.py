"""One model on two machines: network namespaces of Linux, which share nothing but a cable between them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from e2e.test_tensor_parallel import DEATH_S, needs_builtin

from ewe import LLM, SamplingParams

LONG = 300.0
SCRIPT = """
from ewe import LLM, SamplingParams
from ewe.errors import EngineDeadError

with LLM("builtin", config={"model": {"tensor_parallel": 2}}) as llm:
    print(llm.generate("Once", SamplingParams(max_tokens=8))[0].token_ids, flush=True)
    events = llm.stream("Once", SamplingParams(max_tokens=1900, ignore_eos=True))
    print(next(event.kind for event in events if event.kind == "text"), flush=True)
    try:
        list(events)
    except EngineDeadError as error:
        print(error, flush=True)
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass
class Machine:
    """A namespace; number: the last one of its address."""

    name: str
    cable: str
    number: int

    def start(self, script: Path) -> subprocess.Popen[str]:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(self.number - 1)]
        where = ["--master-addr", "10.87.0.1", "--master-port", "29500", str(script)]
        command = ["ip", "netns", "exec", self.name, *torchrun, *where]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def machines() -> Iterator[list[Machine]]:
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and the command ip")
    found = [Machine(f"ewe-{os.getpid()}-{number}", f"ewe{os.getpid()}.{number}"[-15:], number) for number in (1, 2)]
    with ExitStack() as made:
        try:
            for machine in found:
                ip("netns", "add", machine.name)
                made.callback(ip, "netns", "del", machine.name)
            one, other = found
            ip("link", "add", one.cable, "netns", one.name, "type", "veth", "peer", other.cable, "netns", other.name)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        for machine in found:
            ip("-n", machine.name, "addr", "add", f"10.87.0.{machine.number}/24", "dev", machine.cable)
            for device in ("lo", machine.cable):
                ip("-n", machine.name, "link", "set", device, "up")
        yield found


def end(process: subprocess.Popen[str]) -> None:
    """Ends torchrun and what it has started at once, as a power cut would."""
    if process.poll() is not None:
        return
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        member.kill()
    process.wait()


def switch_off(machine: Machine, process: subprocess.Popen[str]) -> None:
    end(process)


def cut_the_cable(machine: Machine, process: subprocess.Popen[str]) -> None:
    ip("-n", machine.name, "link", "set", machine.cable, "down")


@pytest.mark.slow
@needs_builtin
@pytest.mark.parametrize(
    ("fail", "said"),
    [(switch_off, "rank 1 (of 2) has ended"), (cut_the_cable, "rank 1 (of 2) has given no sign of life for 8 s")],
)
def test_they_write_what_one_process_does_and_requests_end_with_the_second_machine(
    machines: list[Machine], tmp_path: Path, fail: Callable[[Machine, subprocess.Popen[str]], None], said: str
) -> None:
    with LLM("builtin") as llm:
        [expected] = llm.generate("Once", SamplingParams(max_tokens=8))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    processes = [machine.start(script) for machine in machines]
    give_up = threading.Timer(LONG, lambda: [end(process) for process in processes])
    give_up.start()  # a line that does not come would be waited for
    try:
        assert processes[0].stdout is not None
        assert processes[0].stdout.readline() == f"{expected.token_ids}\n"
        assert processes[0].stdout.readline() == "text\n"
        fail(machines[1], processes[1])
        begin = time.monotonic()
        assert said in processes[0].stdout.readline()
        assert time.monotonic() - begin < DEATH_S
    finally:
        give_up.cancel()
        for process in processes:
            end(process)
