"""Loadmaster with a plugin that writes down each decision. Bindings are sent at once, and may arrive in any order."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from scheduler import framework as fw
from scheduler.__main__ import main


@dataclass(frozen=True, slots=True)
class DecisionLog(fw.ReservePlugin):
    """Appends the name of the chosen node to a file, a line for each decision."""

    name: ClassVar[str] = "DecisionLog"

    path: str

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """It refuses nothing."""
        return ()

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write(f"{node_name}\n")
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        """Shows a decision that came to nothing as a line that is no node's name."""
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write(f"not {node_name}\n")


if __name__ == "__main__":
    sys.exit(main(plugins={DecisionLog.name: DecisionLog}))
