"""What an installation brings: both packages, all data files, the command; and the house's rules about the code."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from fnmatch import fnmatch
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODULES = sorted(
    [*(ROOT / "ewe").rglob("*.py"), *(ROOT / "kernels").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
)
LONGEST_FUNCTION = 60
LONGEST_KERNEL = 150


def data_files() -> list[str]:
    """Every file below ewe/ that is no Python, relative to it."""
    files = [path for path in (ROOT / "ewe").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(str(path.relative_to(ROOT / "ewe")) for path in files if path.suffix != ".py")


def test_every_data_file_is_declared() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["ewe"]
    assert [name for name in data_files() if not any(fnmatch(name, pattern) for pattern in patterns)] == []


def test_kernels_itself_is_no_package() -> None:
    # Its name belongs to another package, which ours would shadow or overwrite.
    assert not (ROOT / "kernels" / "__init__.py").exists()


def test_both_packages_can_be_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ewe, ewe_kernels"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_command_is_installed() -> None:
    [command] = entry_points(group="console_scripts", name="ewe")
    assert callable(command.load())


def test_everything_pinned_is_one_version() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    names = [line.split("==")[0].lower().replace("_", "-") for line in lines]
    assert all("==" in line for line in lines)
    assert len(names) == len(set(names))
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["test"]
    assert {requirement.split(">=")[0] for requirement in wanted} <= set(names)


def test_modules_open_with_what_they_are_and_functions_stay_short() -> None:
    untold, long = [], {}
    for path in MODULES:
        name, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text())
        untold += [] if ast.get_docstring(tree) else [name]
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > (LONGEST_KERNEL if node.name.endswith("_kernel") else LONGEST_FUNCTION):
                    long[f"{name}: {node.name}"] = length
    assert (untold, long) == ([], {})


def test_a_name_belongs_to_one_module() -> None:
    counts = Counter(path.name for path in MODULES if path.is_relative_to(ROOT / "ewe"))
    assert {name for name, count in counts.items() if count > 1} <= {"__init__.py", "protocol.py"}


def told_sizes() -> tuple[int, int]:
    """Bytes of the wheel and of what it unpacks to, as the documentation says."""
    [(packed, unpacked)] = re.findall(
        r"The wheel is (\d+) MB \((\d+) MB unpacked\)", (ROOT / "docs" / "deployment.md").read_text()
    )
    return int(packed) * 10**6, int(unpacked) * 10**6


def test_the_package_is_as_large_as_the_documentation_says() -> None:
    files = [ROOT / "ewe" / name for name in data_files()]
    files += [path for path in MODULES if path.is_relative_to(ROOT / "ewe") or path.is_relative_to(ROOT / "kernels")]
    _, unpacked = told_sizes()
    assert abs(sum(path.stat().st_size for path in files) - unpacked) < 10**6
    weights = sum(path.stat().st_size for path in files if path.suffix == ".safetensors")
    assert unpacked - weights < 6 * 10**6, "all else is small"


@pytest.mark.slow
def test_the_wheel_holds_both_packages_and_all_data(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
    ]
    # From a copy: building leaves files behind, which would get into the next wheel.
    shutil.copytree(
        ROOT, tmp_path / "source", ignore=shutil.ignore_patterns(".*", "build", "dist", "runs", "*.egg-info")
    )
    subprocess.run([*command, str(tmp_path / "source")], check=True)
    [wheel] = tmp_path.glob("*.whl")
    assert abs(wheel.stat().st_size - told_sizes()[0]) < 10**6
    held = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "ewe").rglob("*.py")}
    assert modules | {f"ewe/{name}" for name in data_files()} <= held
    assert "ewe_kernels/__init__.py" in held
    assert not {name for name in held if name.split("/")[0] in {"kernels", "tests", "benchmarks", "scripts"}}
