#!/bin/sh
# What tools of others say of the files in deploy/; those that are not installed are named and left out.
#   hadolint, docker-compose, promtool, systemd-analyze, and kubectl with kubernetes-validate
set -eu
cd "$(dirname "$0")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
has() {
  command -v "$1" >/dev/null || { echo "left out: $1 is not installed"; return 1; }
}

if has hadolint; then hadolint Dockerfile && echo "hadolint: ok"; fi
if has docker-compose; then
  for more in compose.yaml compose.gpu.yaml; do
    EWE_DB_PASSWORD=x docker-compose -f compose.yaml -f "$more" config --quiet && echo "docker-compose, $more: ok"
  done
fi
if has promtool; then promtool check rules prometheus/alerts.yaml; fi
if has systemd-analyze; then
  sed 's#/opt/ewe/bin/ewe#/bin/true#' ewe.service > "$work/ewe.service"
  systemd-analyze verify "$work/ewe.service" && echo "systemd-analyze: ok"
fi
if has kubectl && has kubernetes-validate; then
  for folder in base gpu; do
    kubectl kustomize "kubernetes/$folder" > "$work/$folder.yaml"
    kubernetes-validate --quiet --strict "$work/$folder.yaml" && echo "kubernetes-validate, $folder: ok"
  done
fi
