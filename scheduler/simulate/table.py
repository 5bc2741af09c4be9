"""Tables as text."""

from collections.abc import Sequence

from scheduler.api.wording.text import printable


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns, except the last cell of a row: it may be long."""
    widths: dict[int, int] = {}
    for row in rows:
        for column, cell in enumerate(row[:-1]):
            widths[column] = max(widths.get(column, 0), len(cell))
    return [
        printable("  ".join([*(cell.ljust(widths[i]) for i, cell in enumerate(row[:-1])), row[-1]]).rstrip())
        for row in rows
    ]
