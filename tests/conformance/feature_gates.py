"""Write scheduler/config/known_feature_gates.py, from kube-scheduler's own registry: with Go.

    python -m tests.conformance.feature_gates

Which gates are the scheduler's, is written down here: a gate that pkg/scheduler or cmd/kube-scheduler asks for.
"""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scheduler.config.known_feature_gates import OF_THE_SCHEDULER
from tests.conformance.oracle import find_oracle

TARGET: Final = Path(__file__).parents[2] / "scheduler" / "config" / "known_feature_gates.py"
HEAD: Final = '''\
"""The feature gates of kube-scheduler 1.36.3, as `python -m tests.conformance.feature_gates` writes them down.

It asks kube-scheduler's own registry. Which of them are the scheduler's, says its source: those that pkg/scheduler asks
for.
"""

from typing import Final
'''


def main() -> int:
    """Run the command."""
    done = subprocess.run([find_oracle(), "--feature-gates"], capture_output=True, text=True, check=True)
    gates = json.loads(done.stdout)
    tables = (
        ("ON", "Those that are on.", [name for name, gate in gates.items() if gate["default"]]),
        ("OFF", "Those that are off.", [name for name, gate in gates.items() if not gate["default"]]),
        ("LOCKED", "Those that cannot be set to another value.", [n for n, gate in gates.items() if gate["locked"]]),
        ("ALPHA", "Those that AllAlpha stands for.", [n for n, gate in gates.items() if gate["stage"] == "ALPHA"]),
        ("BETA", "Those that AllBeta stands for.", [n for n, gate in gates.items() if gate["stage"] == "BETA"]),
        ("DEPRECATED", "Those that will go.", [n for n, gate in gates.items() if gate["stage"] == "DEPRECATED"]),
        ("OF_THE_SCHEDULER", "Those that change where kube-scheduler places pods, or when.", OF_THE_SCHEDULER),
    )
    TARGET.write_text(HEAD + "".join(f"\n{_table(*each)}" for each in tables))
    return 0


def _table(name: str, doc: str, gates: Iterable[str]) -> str:
    lines = textwrap.fill(" ".join(sorted(gates)), 116, initial_indent="    ", subsequent_indent="    ")
    return f'{name}: Final = frozenset(\n    """\n{lines}\n    """.split()\n)\n"""{doc}"""\n'


if __name__ == "__main__":
    sys.exit(main())
