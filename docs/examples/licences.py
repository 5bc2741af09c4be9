"""Start a pod only while a licence is free: a server outside of the cluster counts and hands them out, by HTTP."""

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler import framework as fw

NONE_FREE = fw.unresolvable("no licence is free")


@dataclass
class Licences(fw.PreFilterPlugin, fw.ReservePlugin, fw.PreBindPlugin):
    """Pods with the label `example.com/licence` take one before they are bound.

    `GET <url>/free` answers `{"free": 3}`. `POST <url>/take` and `<url>/give` get `{"pod": "<uid>"}`, and it does no
    harm if they come twice. When a pod ends, it gives its licence back itself.
    """

    name: ClassVar[str] = "Licences"
    url: str
    timeout: fw.Duration = fw.Duration(2)
    label: str = "example.com/licence"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self.free = 0  # until the server has answered
        self.reserved: dict[str, float | None] = {}  # UID → when the server knew; None: it does not yet
        self.refused: set[str] = set()
        self.jobs = handle.tasks.jobs("give a licence back", 60)
        self.repetition = handle.tasks.repeat("count licences", 10, 5, self.count)

    def stop(self) -> None:
        self.repetition.stop()

    def kept(self) -> Any:
        return self.reserved

    def take_over(self, kept: Any) -> None:
        self.reserved = kept

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return ()  # no event in the cluster helps: `count` does

    async def count(self) -> None:
        """Ask how many are free; done again 5 s after each end."""
        asked = asyncio.get_running_loop().time()
        answer = await self.handle.reader.read(f"{self.url}/free", self.timeout)
        self.free = int(json.loads(answer)["free"])
        # This answer counts the pods that the server knew of when it was asked, and no others.
        for uid in [uid for uid, known in self.reserved.items() if known is not None and known < asked]:
            del self.reserved[uid]
        self.refused &= self.handle.pods.keys()
        if self.free > len(self.reserved):
            self.handle.activator.activate(self.refused)
            self.refused.clear()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        if self.label not in pod.labels:
            return fw.SKIP
        if self.free > len(self.reserved):
            return None
        self.refused.add(pod.uid)
        return NONE_FREE

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        if self.label in pod.labels:
            self.reserved[pod.uid] = None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        if self.reserved.pop(pod.uid, None) is not None:  # the server knows of the pod, or may know
            self.jobs.start(f"give back {pod}", self.give(pod))

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        return None if self.label in pod.labels else fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self.reserved[pod.uid] = math.inf  # until there is an answer, the server may know or not
        try:
            await self._post("take", pod)
        except fw.ApiError as error:
            if error.status == 409:  # the last one was taken meanwhile
                return NONE_FREE
            raise
        self.reserved[pod.uid] = asyncio.get_running_loop().time()
        return None

    async def give(self, pod: fw.Pod) -> None:
        await self._post("give", pod)

    async def _post(self, what: str, pod: fw.Pod) -> None:
        body = json.dumps({"pod": pod.uid}).encode()
        await self.handle.reader.post(f"{self.url}/{what}", body, self.timeout)
