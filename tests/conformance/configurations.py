"""The configurations in kube-scheduler's own tests: is each accepted or refused as there, and the same in effect?

    python -m tests.conformance.configurations             the table, of recorded verdicts: without Go
    python -m tests.conformance.configurations --record    collect the configurations and judge them anew: with Go

What differs is a bug, but for our own defaults: the name of a profile without one, and that of the Lease.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from plugins import IN_TREE
from scheduler.config.effective import as_document
from scheduler.config.load import ConfigFile, config_of, values_of
from scheduler.framework.arguments import camel_case
from scheduler.framework.errors import ConfigError
from scheduler.runtime import profile
from tests.conformance.oracle import find_oracle
from tests.conformance.recorded import read_cases, write_cases
from tests.conformance.upstream_configurations import collect

Json = dict[str, Any]
RECORDED: Final = Path(__file__).parent / "configurations" / "upstream.jsonl.gz"

OUR_NAMES: Final = {"default-scheduler": "loadmaster"}
"""How the only profile is called here that a file does not name."""


def verdict(text: str) -> Json:
    """Ours, in the form of the oracle's: `problems`, or `config` and `plugins`."""
    try:
        config = config_of(ConfigFile("FILE", text, values_of(text, "FILE")), IN_TREE)
        plugins = {spec.scheduler_name: _plugins_at(profile.build(spec, IN_TREE)) for spec in config.profiles}
    except ConfigError as error:
        return {"problems": list(error.problems)}
    return {"config": as_document(config, IN_TREE), "plugins": plugins}


def _plugins_at(made: profile.ProfilePlugins) -> Json:
    weights = {"score": made.weights, "placement_score": made.placement_weights}
    return {
        camel_case(point): [[each.name, weights.get(point, {}).get(each.name, 0)] for each in plugins]
        for point, plugins in made.at.items()
        if plugins
    }


def differences(theirs: Json, ours: Json) -> Iterator[str]:
    """How our verdict differs from kube-scheduler's, which the oracle gave."""
    is_refused = not theirs.get("config")
    if "problems" in ours:
        if not is_refused:
            yield f"accepted there, refused here: {'; '.join(ours['problems'])}"
        missing = [] if "invalid" not in theirs else _fields_missed(theirs["invalid"], ours["problems"])
        if missing:
            yield f"problems there that are not told here: {missing}"
        return
    if is_refused:
        said = theirs.get("unreadable") or theirs.get("unbuildable") or theirs["invalid"]
        yield f"refused there, accepted here: {said}"
        return
    expected = {
        name if name in ours["plugins"] else OUR_NAMES.get(name, name): _in_order(plugins)
        for name, plugins in theirs["plugins"].items()
    }
    if expected != ours["plugins"]:
        yield f"other plugins: {_first_difference(expected, ours['plugins'])}"
    for path, value in _settings(theirs["config"]):
        found = _at(ours["config"], path)
        if found != value:
            yield f"{path}: {value!r} there, {found!r} here"


def _fields_missed(invalid: Iterable[Json], problems: Iterable[str]) -> list[str]:
    told = " ".join(problems)
    return [each["path"] for each in invalid if each["path"] and not _is_told(each["path"], told)]


def _is_told(path: str, told: str) -> bool:
    """Whether a problem of that field, or of one within it, is told. kube-scheduler spells one of them otherwise."""
    return path.replace(".Enabled", "") in told


def _in_order(plugins: Json) -> Json:
    """Extension point → its plugins with their weights, which count at Score and PlacementScore only."""
    return {
        point[0].lower() + point[1:]: [
            [each["Name"], each.get("Weight", 0) if point in ("Score", "PlacementScore") else 0]
            for each in chosen["Enabled"]
        ]
        for point, chosen in plugins.items()
        if chosen.get("Enabled") and point != "MultiPoint"
    }


def _first_difference(expected: Json, found: Json) -> str:
    for name in expected.keys() | found.keys():
        there, here = expected.get(name, {}), found.get(name, {})
        for point in there.keys() | here.keys():
            if there.get(point) != here.get(point):
                return f"{name}, {point}: {there.get(point)} there, {here.get(point)} here"
    return "?"


OWN: Final = {"leaderElection.resourceName": "kube-scheduler"}
"""Path → kube-scheduler's default, in whose place we have one of our own."""


def _settings(config: Json, path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        at = f"{path}{key}"
        if isinstance(value, dict):
            yield from _settings(value, f"{at}.")
        elif key not in ("profiles", "extenders") and OWN.get(at) != value and not (value == "" and at not in OWN):
            yield at, value


def _at(config: Json, path: str) -> Any:
    found: Any = config
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def judge(texts: Iterable[str]) -> list[Json]:
    """kube-scheduler's verdicts. Needs Go, or the oracle that it made."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    done = subprocess.run(
        [find_oracle(), "--configurations"], input=lines, capture_output=True, text=True, encoding="utf-8", check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def record() -> None:
    """Collect and judge anew."""
    texts = collect()
    verdicts = judge(texts.values())
    cases = [
        {"case": {"name": name, "text": text}, "expected": expected}
        for (name, text), expected in zip(texts.items(), verdicts, strict=True)
    ]
    write_cases(RECORDED, cases)


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Name, kube-scheduler's verdict, ours, and what differs."""
    for each in read_cases(RECORDED.parent):
        theirs, ours = each["expected"], verdict(each["case"]["text"])
        found = list(differences(theirs, ours))
        there = "accepted" if theirs.get("config") else "refused"
        here = "refused" if "problems" in ours else "accepted"
        yield each["case"]["name"], there, here, "; ".join(found)


def main() -> int:
    """Run the command; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="collect and judge anew; needs Go")
    if parser.parse_args().record:
        record()
    every = list(rows())
    width = max(len(name) for name, *_ in every)
    for name, there, here, difference in every:
        print(f"{name:<{width}}  {there:<8}  {here:<8}  {difference}".rstrip())
    counts = Counter(there for _, there, _, difference in every if not difference)
    differ = len(every) - counts.total()
    print(f"{len(every)} configurations: {counts['accepted']} accepted, {counts['refused']} refused, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
