"""Go's int64, whose sums wrap on overflow."""

from scheduler.framework.nodes.columns import Int64Column


def add_at(column: Int64Column, row: int, amount: int) -> None:
    """Add to one row, wrapping on overflow; numpy would warn or raise."""
    total = column.item(row) + amount
    column[row] = total if -(2**63) <= total < 2**63 else wrapped(total)


def wrapped(total: int) -> int:
    """Return the int64 that Go has for a sum."""
    return (total + 2**63) % 2**64 - 2**63
