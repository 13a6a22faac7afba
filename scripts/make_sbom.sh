#!/bin/sh
# The software bill of materials of an environment that the engine is installed in, as CycloneDX JSON.
#   scripts/make_sbom.sh ENVIRONMENT FILE     e.g. what deploy/install.sh made: the packages of the image
# The generator gets an environment of its own, so that it is not in the list.
set -eu
environment="${1:?usage: scripts/make_sbom.sh ENVIRONMENT FILE}"
file="${2:?usage: scripts/make_sbom.sh ENVIRONMENT FILE}"
source="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/tool"
"$work/tool/bin/python" -m pip --quiet --disable-pip-version-check install "cyclonedx-bom>=7,<8"
mkdir -p "$(dirname "$file")"
"$work/tool/bin/cyclonedx-py" environment "$environment" --pyproject "$source/pyproject.toml" \
  --output-reproducible --output-format JSON --output-file "$file"
echo "$file"
