"""What is freed goes back to the system. In a process of its own, as settings of the C library are for good."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = """
import random
from pathlib import Path
from scheduler.process import allocator

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

{settle}
random.seed(0)
before = resident()
kept, gone = [], []
for number in range(3000):
    kept.append(bytes(random.randrange(600, 5000)))
    gone.append(bytes(random.randrange(100_000, 300_000)))
    {transient}
del gone
{give_back}
print(resident() - before)
"""


def grown_by(settle: str = "", transient: str = "", give_back: str = "") -> int:
    """How many MiB a process keeps of 600 that it has freed, a small block between any two."""
    program = PROGRAM.format(settle=settle, transient=transient, give_back=give_back)
    root = str(Path(__file__).parents[3])
    found = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_what_was_freed_between_small_blocks_is_given_back() -> None:
    without = grown_by(transient="bytes(4_000_000)")
    with_it = grown_by(settle="allocator.settle()", transient="bytes(4_000_000)", give_back="allocator.give_back()")

    assert with_it < 40
    assert without > 5 * with_it
