"""configs/deploy/kuberay.yaml: what KubeRay and Ray Serve ask of it, and that its parts fit together."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.errors import ConfigError
from ewe.server.router.ray_serve import RayArguments, build_app
from ewe.server.settings import resolve_settings

FILE = Path(__file__).parents[2] / "configs" / "deploy" / "kuberay.yaml"
DOCUMENT = yaml.safe_load(FILE.read_text())
SERVE = yaml.safe_load(DOCUMENT["spec"]["serveConfigV2"])

CONTAINER = {"name": str, "image": str, "resources": {"limits": dict, "requests": dict}}
TEMPLATE = {"spec": {"containers": [CONTAINER]}}
WORKERS = {
    **{"groupName": str, "replicas": int, "minReplicas": int, "maxReplicas": int, "rayStartParams": dict},
    "template": TEMPLATE,
}
CLUSTER = {
    **{"rayVersion": str, "enableInTreeAutoscaling": bool, "workerGroupSpecs": [WORKERS]},
    "headGroupSpec": {"rayStartParams": dict, "template": TEMPLATE},
}
RAY_SERVICE = {
    **{"apiVersion": str, "kind": str, "metadata": {"name": str}},
    "spec": {"serveConfigV2": str, "rayClusterConfig": CLUSTER},
}
SCALING = dict.fromkeys(
    ("min_replicas", "max_replicas", "target_ongoing_requests", "upscale_delay_s", "downscale_delay_s"), int
)
DEPLOYMENT = {"name": str, "ray_actor_options": {"num_cpus": int, "num_gpus": int}, "autoscaling_config": SCALING}
APPLICATION = {"name": str, "import_path": str, "route_prefix": str, "args": dict, "deployments": [DEPLOYMENT]}
SERVE_CONFIG = {"http_options": {"host": str, "port": int}, "applications": [APPLICATION]}


def check(value: Any, schema: Any, where: str = "") -> None:
    """Every key of the schema is there, no other is, and leaves have its types."""
    if isinstance(schema, dict):
        assert isinstance(value, dict), where
        assert value.keys() == schema.keys(), where
        for key, part in schema.items():
            check(value[key], part, f"{where}.{key}")
    elif isinstance(schema, list):
        assert value, where
        for number, item in enumerate(value):
            check(item, schema[0], f"{where}[{number}]")
    else:
        assert type(value) is schema, where


def test_the_structure_is_that_of_a_ray_service() -> None:
    assert FILE.read_text().startswith("# ")
    check(DOCUMENT, RAY_SERVICE)
    check(SERVE, SERVE_CONFIG)
    assert (DOCUMENT["apiVersion"], DOCUMENT["kind"]) == ("ray.io/v1", "RayService")


def test_the_application_is_there_and_takes_its_arguments() -> None:
    [application] = SERVE["applications"]
    module, _, name = application["import_path"].partition(":")
    assert getattr(import_module(module), name) is build_app
    given = RayArguments.model_validate(application["args"])
    _, server, _ = resolve_settings("builtin", given.config, {}, given.settings)
    assert server.max_waiting == 64
    assert [deployment["name"] for deployment in application["deployments"]] == ["ewe"]


def test_every_replica_finds_a_place() -> None:
    [deployment] = SERVE["applications"][0]["deployments"]
    [workers] = DOCUMENT["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    [container] = workers["template"]["spec"]["containers"]
    asked, limits = deployment["ray_actor_options"], container["resources"]["limits"]
    per_worker = min(int(limits["cpu"]) // asked["num_cpus"], int(limits["nvidia.com/gpu"]) // asked["num_gpus"])
    scaling = deployment["autoscaling_config"]
    assert 0 < scaling["min_replicas"] <= scaling["max_replicas"] <= per_worker * workers["maxReplicas"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]


def test_the_deployment_says_what_ray_needs() -> None:
    pytest.importorskip("ray.serve", reason="Ray Serve is not installed")
    deployment = build_app({"model": "builtin"})._bound_deployment
    assert deployment.name == "ewe"
    assert deployment._deployment_config.autoscaling_config.max_replicas == 8
    for args, problem in (
        ({"modell": "x"}, "modell"),
        ({"model": "builtin", "settings": ("longterm.path=x",)}, "one writer"),
    ):
        with pytest.raises(ConfigError, match=problem):
            build_app(args)
