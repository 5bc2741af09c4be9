import subprocess
import sys

import pytest


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_needs_no_engine_does_not_load_it(option: str) -> None:
    names = ("numpy", "msgspec", "plugins", "scheduler.framework", "scheduler.commands.run")
    code = (
        "import atexit, sys, scheduler.__main__\n"
        f"atexit.register(lambda: print('loaded:', [name for name in {names} if name in sys.modules]))\n"
        f"scheduler.__main__.main([{option!r}])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.endswith("loaded: []\n")
