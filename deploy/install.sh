#!/bin/sh
# Installs the engine of this source tree into a new virtual environment: what deploy/Dockerfile runs, and what you run
# where there is no Docker.
#   deploy/install.sh FOLDER [cpu|cuda]
# PYTHON: the interpreter (python3). TORCH_INDEX: where torch comes from; empty: where pip looks anyway.
set -eu
folder="${1:?usage: deploy/install.sh FOLDER [cpu|cuda]}"
target="${2:-cpu}"
source="$(cd "$(dirname "$0")/.." && pwd)"
case "$target" in
  cpu) index="${TORCH_INDEX-https://download.pytorch.org/whl/cpu}" ;;
  cuda) index="${TORCH_INDEX-}" ;; # for Linux, PyPI has the build for CUDA
  *) echo "the target is cpu or cuda, not $target" >&2; exit 2 ;;
esac

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

# torch goes first and alone: resolving it together with the rest may pick another build of it.
pip install -c "$source/constraints.txt" ${index:+--index-url "$index"} torch
# The wheel is built from a copy: building leaves files behind, which would get into the next wheel.
mkdir "$work/source"
(cd "$source" && cp -R pyproject.toml README.md LICENSE NOTICE ewe kernels "$work/source")
pip wheel --no-deps --wheel-dir "$work" "$work/source"
# By force: of a folder that has this version already the files may be older.
pip install --no-deps --force-reinstall "$work"/*.whl
pip install -c "$source/constraints.txt" "$(echo "$work"/*.whl)[serve,dense,documents,office,otel,postgres,structured]"
"$folder/bin/ewe" --version
