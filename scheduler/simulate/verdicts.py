"""The verdicts on all nodes for one pod, kept as columns, which become text when they are read.

Two million of them, those of 400 pods on 5,000 nodes, take 100 MiB, and 2 GiB as dictionaries.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from scheduler.framework.status import Code
from scheduler.runtime.scoring import Scores

NOT_ASKED: Final = -1
FEASIBLE: Final = 0

Verdict = dict[str, Any]
"""{"code", "scores", "total"} or {"code", "plugin", "reasons"}."""


class NodeOrder:
    """The nodes by name, the same for all pods of a simulation."""

    def __init__(self, rows: Mapping[str, int]) -> None:
        """`rows`: node → its row in the table."""
        self.names: Final = sorted(rows)
        self.rows: Final = np.array([rows[name] for name in self.names], np.intp)
        self.places: Final = {name: place for place, name in enumerate(self.names)}

    @cached_property
    def keys(self) -> list[str]:
        """The names as JSON."""
        return [orjson.dumps(name).decode() for name in self.names]


class NodeVerdicts(Mapping[str, Verdict]):
    """Node name → verdict, for the nodes that were asked, by name."""

    def __init__(
        self, order: NodeOrder, which: NDArray[np.int32], refusals: Sequence[Verdict], scores: Scores | None
    ) -> None:
        """`which`: for each node in that order NOT_ASKED, FEASIBLE, or the place of its refusal, counted from 1.

        `scores`: of the feasible nodes, by name.
        """
        self._order = order
        self._which = which
        self._refusals = refusals
        self._scores = scores

    def __getitem__(self, name: str) -> Verdict:
        place = self._order.places[name]
        which = int(self._which[place])
        if which == NOT_ASKED:
            raise KeyError(name)
        if which != FEASIBLE:
            return self._refusals[which - 1]
        return self._feasible(int(np.count_nonzero(self._which[:place] == FEASIBLE)))

    def __iter__(self) -> Iterator[str]:
        return (self._order.names[place] for place in np.flatnonzero(self._which != NOT_ASKED).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._which != NOT_ASKED))

    def __eq__(self, other: object) -> bool:
        return dict(self) == other

    def __hash__(self) -> int:
        return id(self)

    def _feasible(self, place: int) -> Verdict:
        verdict: Verdict = {"code": Code.SUCCESS.label}
        if self._scores is not None:
            by_plugin = {plugin: int(column[place]) for plugin, column in self._scores.by_plugin.items()}
            verdict |= {"scores": by_plugin, "total": int(self._scores.total[place])}
        return verdict

    def as_json(self, indentation: str) -> str:
        """Return what orjson makes of it, two spaces for a level; `indentation`: of the line on which it begins."""
        inner = f"\n{indentation}  "
        refused = [_indented(refusal, inner) for refusal in self._refusals]
        feasible = self._feasible_texts(inner)
        keys = self._order.keys
        entries = [
            f"{keys[place]}: {next(feasible) if which == FEASIBLE else refused[which - 1]}"
            for place, which in enumerate(self._which.tolist())
            if which != NOT_ASKED
        ]
        return f"{{{inner}{f',{inner}'.join(entries)}\n{indentation}}}" if entries else "{}"

    def _feasible_texts(self, inner: str) -> Iterator[str]:
        if self._scores is None:
            return repeat(_indented({"code": Code.SUCCESS.label}, inner))
        zeros = dict.fromkeys(self._scores.by_plugin, 0)
        verdict = {"code": Code.SUCCESS.label, "scores": zeros, "total": 0}
        template = _ZERO.sub('": %d', _indented(verdict, inner).replace("%", "%%"))
        columns = np.column_stack([*self._scores.by_plugin.values(), self._scores.total])
        return (template % tuple(numbers) for numbers in columns.tolist())


_ZERO: Final = re.compile(r'": 0(?=,?\n)')


def _indented(value: Any, line: str) -> str:
    """`line`: how a line of it begins."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode().replace("\n", line)
