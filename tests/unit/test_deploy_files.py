"""deploy/: every command, option, setting, variable, port, path and folder in it is one that the project has."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from typer.main import get_command

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.cli.main import app as cli
from ewe.config import Config
from ewe.server.app import create_app
from ewe.server.http.draining import FLUSH_S
from ewe.server.router.replicas import ReplicaSet
from ewe.server.router.router_app import create_router
from ewe.server.settings import ServerSettings, resolve_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNIT = (DEPLOY / "ewe.service").read_text()
GUIDE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
BASE = DEPLOY / "kubernetes" / "base"
OBJECTS = {
    (each["kind"], each["metadata"]["name"]): each
    for file in ("server.yaml", "router.yaml", "policies.yaml")
    for each in yaml.safe_load_all((BASE / file).read_text())
}
SERVER_POD = OBJECTS["StatefulSet", "ewe-server"]["spec"]["template"]["spec"]
ROUTER_POD = OBJECTS["Deployment", "ewe-router"]["spec"]["template"]["spec"]
CONFIGS = [DEPLOY / "config.yaml", BASE / "config.yaml", DEPLOY / "kubernetes" / "gpu" / "config.yaml"]
# What others than this project read: Python, Hugging Face, torch, Triton, NVIDIA's container runtime, libpq.
OF_OTHERS = {"HOME", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "HF_HOME", "TRITON_CACHE_DIR"}
OF_OTHERS |= {"TORCHINDUCTOR_CACHE_DIR", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "PGPASSWORD"}


def instructions(name: str) -> list[str]:
    """The arguments of an instruction of the Dockerfile, lines joined."""
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    return re.findall(rf"^{name} (.*)$", joined, re.M)


def image_environment() -> dict[str, str]:
    """What the image of any target sets."""
    return dict(part.split("=", 1) for line in instructions("ENV") for part in shlex.split(line))


def containers() -> list[dict[str, Any]]:
    return [*SERVER_POD["initContainers"], *SERVER_POD["containers"], *ROUTER_POD["containers"]]


def commands() -> Iterator[list[str]]:
    """What the files have `ewe` do, without its name."""
    yield from map(yaml.safe_load, instructions("CMD"))
    for service in COMPOSE["services"].values():
        if service["image"].startswith("ewe:"):
            yield service["command"]
    yield from (container["args"] for container in containers())
    yield from (shlex.split(line)[1:] for line in re.findall(r"^ExecStart(?:Pre)?=(.*)$", UNIT, re.M))
    for block in re.findall(r"^```sh\n(.*?)^```", GUIDE, re.M | re.S):
        yield from (
            shlex.split(told, comments=True)
            for told in re.findall(r"\bewe ((?:validate|serve|route) .*)$", block, re.M)
        )


def environments() -> Iterator[dict[str, str]]:
    """Variables, with their values or text in place of one that is secret."""
    yield image_environment()
    yield COMPOSE["services"]["server"]["environment"]
    for container in containers():
        yield {each["name"]: each.get("value", "a secret") for each in container.get("env", ())}
    yield dict(line.split("=", 1) for line in re.findall(r"^Environment=(.*)$", UNIT, re.M))


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_commands_and_their_options_are_there(command: list[str]) -> None:
    name, *arguments = command
    known = get_command(cli).commands[name]  # type: ignore[attr-defined]
    options = {option for parameter in known.params for option in parameter.opts}
    assert {part for part in arguments if part.startswith("-")} <= options
    takes_arguments = any(parameter.param_type_name == "argument" for parameter in known.params)
    assert takes_arguments or all(part.startswith("-") for part in arguments)


def test_a_command_that_is_not_there_is_found_out() -> None:
    with pytest.raises(KeyError):
        test_commands_and_their_options_are_there(["server"])
    with pytest.raises(AssertionError):
        test_commands_and_their_options_are_there(["serve", "--configuration", "x"])


@pytest.mark.parametrize("variables", list(environments()), ids=lambda variables: next(iter(variables), "none"))
def test_variables_are_settings_or_somebody_reads_them(variables: dict[str, str]) -> None:
    ours = {name: value for name, value in variables.items() if name.startswith("EWE_ENGINE_")}
    _, _, unknown = resolve_settings(None, DEPLOY / "config.yaml", ours, ())  # raises for a setting that is none
    assert unknown == []
    code = "\n".join(path.read_text() for path in (ROOT / "ewe").rglob("*.py"))
    for name in variables.keys() - ours.keys() - OF_OTHERS:
        assert name.startswith("EWE_"), name
        assert f'"{name}"' in code, name


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_configurations_load_and_say_what_they_are_for(path: Path) -> None:
    Config.from_yaml(path)
    ServerSettings.from_yaml(path)
    assert path.read_text().startswith("# ")


def test_the_first_configuration_serves_the_builtin_model_with_its_settings() -> None:
    assert Config.from_yaml(DEPLOY / "config.yaml") == Config.from_yaml(ROOT / "configs" / "builtin.yaml")
    assert (BASE / "config.yaml").read_text() == (DEPLOY / "config.yaml").read_text()


def test_ports_are_the_servers_and_probes_ask_what_answers() -> None:
    port = ServerSettings.from_yaml(DEPLOY / "config.yaml").port
    assert instructions("EXPOSE") == [str(port)]
    told = [int(text) for text in re.findall(r"127\.0\.0\.1:(\d+)", DOCKERFILE)]
    told += [int(text) for text in re.findall(r"http://[\w.-]+:(\d+)", " ".join(map(str, commands())))]
    told += [each["containerPort"] for container in containers() for each in container.get("ports", ())]
    told += [int(published.split(":")[-1]) for published in COMPOSE["services"]["router"]["ports"]]
    assert set(told) == {port}
    server = set(create_app().openapi()["paths"])
    router = {route.path for route in create_router(ReplicaSet([]), 1000).routes}  # type: ignore[attr-defined]
    for pod, known in ((SERVER_POD, server), (ROUTER_POD, router)):
        [container] = pod["containers"]
        for probe in ("livenessProbe", "readinessProbe"):
            asked = container[probe]["httpGet"]
            assert asked["path"] in known
            assert asked["port"] in {each["name"] for each in container["ports"]}
    assert f":{port}/ping'" in instructions("HEALTHCHECK")[0]
    assert "/ping" in server & router


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def test_there_is_time_to_drain() -> None:
    drain = max(ServerSettings.from_yaml(path).drain for path in CONFIGS) + FLUSH_S
    for name in ("server", "router"):
        assert seconds(COMPOSE["services"][name]["stop_grace_period"]) > drain
    assert seconds(re.findall(r"^TimeoutStopSec=(.*)$", UNIT, re.M)[0]) > drain
    assert SERVER_POD["terminationGracePeriodSeconds"] > drain
    [router] = ROUTER_POD["containers"]
    waits = float(router["lifecycle"]["preStop"]["exec"]["command"][1])
    assert ROUTER_POD["terminationGracePeriodSeconds"] > drain + waits
    assert instructions("STOPSIGNAL") == ["SIGTERM"]


def test_the_file_system_is_read_only_but_for_what_is_mounted() -> None:
    volumes = yaml.safe_load(instructions("VOLUME")[0])
    folders = {name: value for name, value in image_environment().items() if value.startswith("/var/")}
    assert {"HOME", "EWE_CACHE_DIR", "HF_HOME"} <= folders.keys()
    assert all(value.startswith(tuple(volumes)) for value in folders.values())
    assert instructions("WORKDIR")[0] in volumes
    for container in containers():
        assert container["securityContext"]["readOnlyRootFilesystem"]
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        needed = {"/tmp", "/var/cache/ewe"} if container["name"] == "router" else {"/tmp", *volumes}
        assert needed <= mounted
    for name in ("server", "router"):
        service = COMPOSE["services"][name]
        assert service["read_only"]
        assert service["tmpfs"] == ["/tmp"]
        assert "/var/cache/ewe" in {text.split(":")[1] for text in service["volumes"]}


def test_nobody_is_root() -> None:
    user = instructions("USER")
    assert user[0] == user[-1] == "10001:10001"
    for pod in (SERVER_POD, ROUTER_POD):
        security = pod["securityContext"]
        assert security["runAsNonRoot"]
        assert f"{security['runAsUser']}:{security['runAsGroup']}" == user[0]
        assert not pod["automountServiceAccountToken"]
    for container in containers():
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_the_image_is_made_of_what_is_there() -> None:
    copied = [source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in allowed if line.startswith("!")} == set(copied)
    stages = {line.split()[-1] for line in instructions("FROM")}
    named = set(re.findall(r"--target (\w+)", DOCKERFILE)) | {COMPOSE["services"]["server"]["build"]["target"]}
    assert named <= stages
    [python] = [line.partition("=")[2] for line in instructions("ARG")]
    assert f"{python}.0" in SpecifierSet(PROJECT["requires-python"])


def test_the_script_installs_extras_that_are_there() -> None:
    script = (DEPLOY / "install.sh").read_text()
    [extras] = re.findall(r"\.whl\)\[([\w,-]+)\]", script)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    [needed] = re.findall(r"cp -R (.*?) \"", script)
    assert all((ROOT / name).exists() for name in needed.split())
    refused = subprocess.run([DEPLOY / "install.sh", "x", "tpu"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (2, "the target is cpu or cuda, not tpu\n")


def test_the_router_knows_every_server() -> None:
    servers = OBJECTS["StatefulSet", "ewe-server"]["spec"]
    [router] = ROUTER_POD["containers"]
    names = [re.fullmatch(r"http://([\w-]+)\.([\w-]+):\d+", url) for url in router["args"][1:]]
    assert [name and name[1] for name in names] == [f"ewe-server-{number}" for number in range(servers["replicas"])]
    assert {name and name[2] for name in names} == {servers["serviceName"]} == {"ewe-server"}
    assert ("Service", "ewe-server") in OBJECTS


def test_selectors_find_their_pods() -> None:
    labels = {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for each in OBJECTS.values()
        if each["kind"] in ("StatefulSet", "Deployment")
    }
    text = "".join((BASE / file).read_text() for file in ("server.yaml", "router.yaml", "policies.yaml"))
    assert set(re.findall(r"component: (\w+)\}", text)) == labels
    assert {name for kind, name in OBJECTS if kind == "PodDisruptionBudget"} == {"ewe-server", "ewe-router"}


def test_what_is_mounted_is_a_volume_of_the_pod() -> None:
    for pod in (SERVER_POD, ROUTER_POD):
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_the_memories_have_an_address_without_a_password() -> None:
    address = COMPOSE["services"]["server"]["environment"]["EWE_ENGINE_LONGTERM__PATH"]
    assert address == "postgresql://ewe@postgres/" + COMPOSE["services"]["postgres"]["environment"]["POSTGRES_DB"]
    role = (DEPLOY / "postgres-role.sh").read_text()
    assert "CREATE ROLE ewe LOGIN NOSUPERUSER" in role
    assert "CREATE SCHEMA ewe AUTHORIZATION ewe" in role
