"""What a PromQL expression asks for: metrics, the labels that it selects by, and those that it groups by."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

SELECTOR: Final = re.compile(r"\b([a-z]+_\w+|up|ALERTS)\b(?:\{([^}]*)\})?(?!\()")
MATCHER: Final = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING: Final = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
NO_METRICS: Final = frozenset({"histogram_quantile", "max_over_time", "min_over_time"})


class Selector(NamedTuple):
    """`metric{label="value", …}`."""

    metric: str
    """Of a histogram, with `_bucket`, `_sum` or `_count`."""
    matchers: tuple[tuple[str, str, str], ...]
    """Label, operator, value."""

    @property
    def text(self) -> str:
        return self.metric + "{" + ",".join(f'{label}{how}"{value}"' for label, how, value in self.matchers) + "}"


def selectors(expression: str) -> Iterator[Selector]:
    """All selectors in an expression."""
    for found in SELECTOR.finditer(GROUPING.sub("", expression)):
        if found[1] not in NO_METRICS:
            yield Selector(found[1], tuple(MATCHER.findall(found[2] or "")))


def groupings(expression: str) -> set[str]:
    """The labels that an expression groups by, or joins on."""
    return {label.strip() for found in GROUPING.findall(expression) for label in found.split(",")}
