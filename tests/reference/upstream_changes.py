"""Lists the changes of a new kube-scheduler that concern us, and where we have them: the start of a move to it.

    python -m tests.reference.upstream_changes 1.36.3 1.37.2 [--kind message]      (`make upstream FROM=… TO=…`)

Needs Go, which fetches both versions into its module cache. It does not see what a changed algorithm decides, the order
of calls, composed texts, computed defaults, labels' values, and rules in the API server.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.reference.go_facts import KINDS, Facts, Sources, names_read

ROOT: Final = Path(__file__).parents[2]
OURS: Final = ("scheduler/*.py", "plugins/*.py", "scheduler/files/generated/*.txt", "docs/*.md", "charts/*.yaml")
MAX_PLACES: Final = 3


class Change(NamedTuple):
    """A fact that differs."""

    kind: str
    key: str
    before: str
    after: str

    @property
    def words(self) -> str:
        """What is looked for in our files."""
        match self.kind:
            case "message":
                return max(re.split(r"%\S+|\\\"", self.key), key=len).strip()
            case "permission":
                return self.key.rsplit("/", 1)[-1]
            case "API field" | "configuration":
                name = self.key.rsplit(".", 1)[-1]
                return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
            case "event":
                return self.key.split()[0]
            case _:
                return self.key.split()[-1]


def sources(version: str) -> Sources:
    """Fetch a version into Go's module cache."""
    minor = version.removeprefix("1.")
    found: dict[str, Path] = {}

    def staging(name: str) -> Path:
        if name not in found:
            found[name] = _fetched(f"k8s.io/{name}@v0.{minor}")
        return found[name]

    return Sources(version, _fetched(f"k8s.io/kubernetes@v{version}"), staging)


def changes(before: Facts, after: Facts, kind: str) -> Iterator[Change]:
    """Yield the facts of a kind that came, went or differ."""
    for key in sorted({*before, *after}):
        if kind == "message" and key in before and key in after:
            continue  # it may have moved to another file
        if before.get(key) != after.get(key):
            yield Change(kind, key, before.get(key, "none"), after.get(key, "none"))


def places(words: str, under: str = "") -> str:
    """Return the files of ours, below a folder, that have these words."""
    pattern = re.compile(rf"\b{re.escape(words)}\b") if re.fullmatch(r"\w+", words) else re.compile(re.escape(words))
    found = [str(path.relative_to(ROOT)) for path, text in _our_files() if words and pattern.search(text)]
    found = [path for path in found if path.startswith(under)]
    more = f" and {len(found) - MAX_PLACES} more" if len(found) > MAX_PLACES else ""
    return ", ".join(found[:MAX_PLACES]) + more


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--kind", choices=[*KINDS])
    options = parser.parse_args()
    before, after = sources(options.before), sources(options.after)
    print(f"| kind | what | {options.before} | {options.after} | ours |\n|---|---|---|---|---|")
    for kind, read in KINDS.items():
        if options.kind in (None, kind):
            for each in changes(read(before), read(after), kind):
                if kind == "API field" and each.key.rsplit(".", 1)[-1] not in names_read(after):
                    continue  # the scheduler reads no field of that name
                print(
                    "| "
                    + " | ".join(
                        _cell(text)
                        for text in (*each, places(each.words, "scheduler/api" if kind == "API field" else ""))
                    )
                    + " |"
                )
    return 0


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _fetched(module: str) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        command = ["go", "mod", "download", "-json", module]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} cannot be fetched: {done.stderr.strip() or done.stdout.strip()}")
    return Path(json.loads(done.stdout)["Dir"])


@cache
def _our_files() -> list[tuple[Path, str]]:
    found = {path for pattern in OURS for path in ROOT.glob(pattern.replace("/", "/**/", 1))}
    return [(path, path.read_text(encoding="utf-8")) for path in sorted(found)]


if __name__ == "__main__":
    sys.exit(main())
