"""deploy/postgres-role.sh makes a role that can keep memories, and no more; `ewe validate` can reach it."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.longterm.records import Memory
from ewe.longterm.store import MemoryStore

SCRIPT = (Path(__file__).parents[2] / "deploy" / "postgres-role.sh").read_text()


def test_the_role_that_the_script_makes_can_keep_memories(postgres: Any, tmp_path: Path) -> None:
    programs = distribution("pgserver").locate_file("pgserver/pginstall/bin")
    postgres.execute("CREATE DATABASE deployed", database="postgres")
    variables = {"PGHOST": str(postgres.folder), "POSTGRES_DB": "deployed", "KEEPER_DB_PASSWORD": "it's secret"}
    # Under another name: the tests' server has a role `ewe`.
    script = SCRIPT.replace("EWE", "KEEPER").replace("ewe", "keeper")
    environment = {**os.environ, **variables, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    url = f"postgresql://keeper@/deployed?host={postgres.folder}"
    with MemoryStore.create(url) as store:
        store.add([Memory("tea", "Ann drinks tea.")])
        assert len(store) == 1
    asked = "SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_roles WHERE rolname = 'keeper'"
    assert postgres.execute(asked, database="deployed") == [(False,)]
    config = tmp_path / "prod.yaml"
    config.write_text(f"longterm: {{path: '{url}'}}\n")
    told = CliRunner().invoke(app, ["validate", str(config)])
    assert (told.exit_code, told.output) == (0, f"{config}: ok\n")
