"""Folded stacks, as speedscope and flamegraph.pl read them."""

from collections.abc import Iterator


def stacks(text: str) -> Iterator[tuple[list[str], int]]:
    """Yield each stack of a text, its frames from the outermost, with its weight."""
    for line in text.splitlines():
        frames, _, weight = line.rpartition(" ")
        yield frames.split(";"), int(weight)
