"""What the API server says about bindings: its audit log, of them alone."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create]
    resources: [{group: "", resources: [pods/binding]}]
  - level: None
"""


def flags(directory: Path) -> tuple[str, ...]:
    """Write the policy into a directory; return the API server's flags."""
    policy = directory / "audit-policy.yaml"
    policy.write_text(POLICY)
    return (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log_in(directory)}",
        "--audit-log-maxsize=1000",
        "--audit-log-mode=batch",
    )


def log_in(directory: Path) -> Path:
    return directory / "audit.log"


@dataclass(frozen=True, slots=True)
class Answers:
    """To all requests to bind a pod."""

    by_code: Counter[int]
    doubled: list[str]
    """Pods that were bound more than once."""


def read(path: Path) -> Answers:
    """Read the log of a server that has ended."""
    codes: Counter[int] = Counter()
    bound: Counter[str] = Counter()
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        code = entry["responseStatus"]["code"]
        codes[code] += 1
        if code == 201:
            bound[f"{entry['objectRef']['namespace']}/{entry['objectRef']['name']}"] += 1
    return Answers(codes, [pod for pod, times in bound.items() if times > 1])
