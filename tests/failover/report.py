"""What the rounds say: a table, a verdict, a file of rounds, a picture."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from tests.bench.plot import Curve, curves
from tests.failover.audit import Answers
from tests.failover.rounds import Round

HEADER = ("the leader gets", "lease", "rounds", "median gap", "longest gap", "allowed", "verdict")


def table(rounds: Sequence[Round]) -> str:
    """A row for each way to go and each lease duration, in Markdown."""
    rows = [HEADER, *map(row, groups(rounds))]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    cells = [[cell.ljust(width) for cell, width in zip(each, widths, strict=True)] for each in rows]
    return "\n".join("| " + " | ".join(each) + " |" for each in cells)


def groups(rounds: Sequence[Round]) -> Iterator[list[Round]]:
    """Rounds that can be compared, in the order of their first."""
    for key in dict.fromkeys((each.how, each.lease) for each in rounds):
        yield [each for each in rounds if (each.how, each.lease) == key]


def row(group: list[Round]) -> tuple[str, ...]:
    first, gaps = group[0], [each.gap for each in group]
    wrong = sum(not each.is_right for each in group)
    return (
        first.how,
        f"{first.lease:g} s",
        str(len(group)),
        f"{median(gaps):.2f} s",
        f"{max(gaps):.2f} s",
        f"{first.allowed:g} s",
        "right" if not wrong else f"{wrong} wrong",
    )


def verdict(rounds: Sequence[Round], answers: Answers, moved: Sequence[str]) -> list[str]:
    """What is wrong, a line each."""
    problems = [
        f"round {each.number}: {each.how}, exit code {each.exit_code}, {each.gap:.2f} s without a binding, "
        f"{each.allowed:g} s allowed"
        for each in rounds
        if not each.is_right
    ]
    problems += [f"{pod} was bound more than once" for pod in answers.doubled]
    return problems + [f"{pod} was seen on two nodes" for pod in moved]


def write(directory: Path, rounds: Sequence[Round], answers: Answers) -> None:
    """Write rounds.jsonl, failover.svg and failover.md."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({**asdict(each), "allowed": each.allowed}) for each in rounds]
    (directory / "rounds.jsonl").write_text("\n".join(lines) + "\n")
    by_group = [
        Curve(f"{group[0].how}, lease {group[0].lease:g} s", [(each.number, each.gap) for each in group])
        for group in groups(rounds)
    ]
    title = "Longest time without a binding when the leader goes"
    (directory / "failover.svg").write_text(curves(title, "round", "seconds", by_group, dots=True))
    (directory / "failover.md").write_text(f"{table(rounds)}\n\n{told(answers)}\n")


def told(answers: Answers) -> str:
    """How the API server answered."""
    codes = ", ".join(f"{count:,} of {code}" for code, count in sorted(answers.by_code.items()))
    return f"Answers to bindings: {codes}; bound twice: {len(answers.doubled)}."
