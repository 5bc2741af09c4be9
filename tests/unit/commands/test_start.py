"""`loadmaster explain` ends sooner than Python would load what decides: so it loads nothing of that."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.unit.commands.scripted_api import Answer, ScriptedApi
from tests.unit.commands.test_explain import A_TOKEN, EXPLAIN, FOUND, TOKEN
from tests.unit.kube.fake_api import kubeconfig_text

HEAVY: Final = frozenset(
    {"cel_expr_python", "cryptography", "kopf", "kubernetes", "numpy", "opentelemetry", "plugins", "pydantic", "uvloop"}
)
DECIDING: Final = frozenset(
    f"scheduler.{room}" for room in ("cycle", "framework.exported", "loading.load", "queue", "simulate.engine", "state")
)


def test_asking_loads_nothing_that_decides(tmp_path: Path) -> None:
    api = ScriptedApi({TOKEN: A_TOKEN, EXPLAIN: Answer(200, FOUND)})
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(api.url))
    with api.running():
        done = subprocess.run(
            [
                sys.executable,
                "-X",
                "importtime",
                "-m",
                "scheduler",
                "explain",
                "shop/web",
                f"--kubeconfig={kubeconfig}",
            ],
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=False,
        )

    lines = done.stderr.splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    said = [line for line in lines if not line.startswith("import time:")]
    assert (done.returncode, done.stdout, said) == (0, "shop/web  unschedulable\n", [])
    assert "aiohttp" in loaded
    assert {name for name in loaded if name.partition(".")[0] in HEAVY} == set()
    assert loaded & DECIDING == set()
