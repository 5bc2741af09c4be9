"""Write scheduler/files/generated/feature_gates.txt, from kube-scheduler's own registry: with Go.

    python -m tests.conformance.feature_gates

Which gates are the scheduler's is kept as it is in the file: a gate that pkg/scheduler or cmd/kube-scheduler asks for,
not only for speed.
"""

import json
import subprocess
import sys
from typing import Final

from scheduler.config.feature_gates import known_gates
from scheduler.files.generated import FOLDER
from tests.conformance.oracle import find_oracle

TARGET: Final = FOLDER / "feature_gates.txt"


def main() -> int:
    """Run the command."""
    done = subprocess.run([find_oracle(), "--feature-gates"], capture_output=True, text=True, check=True)
    ours = {name for name, gate in known_gates().items() if gate.is_of_scheduling}
    lines = []
    for name, gate in sorted(json.loads(done.stdout).items()):
        words = [name, "on" if gate["default"] else "off", gate["stage"]]
        words += ["locked"] if gate["locked"] else []
        words += ["scheduling"] if name in ours else []
        lines.append(" ".join(filter(None, words)))
    TARGET.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
