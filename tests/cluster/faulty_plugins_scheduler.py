"""Loadmaster with a plugin that does what a pod's label `does` asks for: exits, lags, hangs, loops without end."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import ClassVar

from scheduler import framework as fw
from scheduler.__main__ import main

END = "LOADMASTER_TEST_END"
"""Variable with the path of a file: once it is there, the endless loop ends."""


class Misbehaving(fw.FilterPlugin, fw.PreBindPlugin):
    name: ClassVar[str] = "Misbehaving"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        does = pod.labels.get("does")
        if does == "exit":
            sys.exit("enough")
        if does == "lag":
            time.sleep(0.7)
        end = Path(os.environ[END])
        while does == "loop" and not end.exists():
            pass
        return None

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        if pod.labels.get("does") == "hang":
            await asyncio.Event().wait()
        return None


if __name__ == "__main__":
    sys.exit(main(plugins={"Misbehaving": Misbehaving}))
