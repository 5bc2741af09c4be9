"""Loadmaster with a plugin that does what a pod's label `does` asks for: exits, or loops without end."""

import os
import sys
from pathlib import Path
from typing import ClassVar

from scheduler import framework as fw
from scheduler.__main__ import main

END = "LOADMASTER_TEST_END"
"""Variable with the path of a file: once it is there, the endless loop ends."""


class Misbehaving(fw.FilterPlugin):
    name: ClassVar[str] = "Misbehaving"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        does = pod.labels.get("does")
        if does == "exit":
            sys.exit("enough")
        end = Path(os.environ[END])
        while does == "loop" and not end.exists():
            pass
        return None


if __name__ == "__main__":
    sys.exit(main(plugins={"Misbehaving": Misbehaving}))
