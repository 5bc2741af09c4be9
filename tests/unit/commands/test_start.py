"""What a command does not need is not loaded, as that takes longer than some commands do."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.unit.commands.scripted_api import served
from tests.unit.commands.test_explain import A_TOKEN, EXPLAIN, FOUND, TOKEN
from tests.unit.kube.fake_api import Answer

ROOT: Final = Path(__file__).parents[3]
HEAVY: Final = frozenset(
    {"cel_expr_python", "cryptography", "kopf", "kubernetes", "numpy", "opentelemetry", "plugins", "pydantic", "uvloop"}
)
DECIDING: Final = frozenset(
    f"scheduler.{room}"
    for room in ("cycle", "framework.exported", "plugin_loading.load", "queue", "simulate.engine", "state")
)


def test_asking_loads_nothing_that_decides(tmp_path: Path) -> None:
    with served(tmp_path, {TOKEN: A_TOKEN, EXPLAIN: Answer(200, FOUND)}) as (_, kubeconfig):
        command = [sys.executable, "-X", "importtime", "-m", "scheduler", "explain", "shop/web"]
        done = subprocess.run(
            [*command, f"--kubeconfig={kubeconfig}"], cwd=ROOT, capture_output=True, text=True, check=False
        )

    lines = done.stderr.splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    said = [line for line in lines if not line.startswith("import time:")]
    assert (done.returncode, done.stdout, said) == (0, "shop/web  unschedulable\n", [])
    assert "aiohttp" in loaded
    assert {name for name in loaded if name.partition(".")[0] in HEAVY} == set()
    assert loaded & DECIDING == set()


def test_help_loads_no_engine_and_no_client() -> None:
    code = (
        "import contextlib, io, sys\n"
        "from scheduler.__main__ import COMMANDS, main\n"
        "for arguments in ['--help'], ['--version'], *([name, '--help'] for name in COMMANDS):\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        main(arguments)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) & {*HEAVY, "aiohttp", "prometheus_client"} == set()
