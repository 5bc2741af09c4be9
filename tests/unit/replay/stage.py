"""A whole scheduler over a cluster in memory, that is recorded while it works."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.config.effective import as_document
from scheduler.config.feature_gates import read_gates
from scheduler.config.load import config_from_dict
from scheduler.config.profiles import API_VERSION, KIND
from scheduler.config.types import Config
from scheduler.cycle.writers import NoWriters, Writers
from scheduler.engine.engine import Engine, ExtenderAccess, build_engine, queue_settings
from scheduler.framework.handle import ApiWriter, NoWrites
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.replay.recorder import Recorder
from scheduler.replay.trace.gzip_members import GzipMembers
from scheduler.runtime.registry import Registry
from scheduler.testing import a_node, node_from_dict, pod_from_dict
from scheduler.testing.objects import as_kept
from tests.fakes import FakeClock, settle

PROFILE: Final = "default-scheduler"

Object = dict[str, Any]


def enabled(*plugins: str, **more: Any) -> Object:
    """More of a profile: plugins that are off by default; `more`: of each."""
    return {"plugins": {"multiPoint": {"enabled": [{"name": name, **more} for name in plugins]}}}


class Stage(NoWriters):
    """The scheduler. What it binds and evicts takes effect at once, as if the watch had shown it."""

    def __init__(
        self,
        profile: Mapping[str, Any] | None = None,
        registry: Registry | None = None,
        api: ApiWriter | None = None,
        extender_access: ExtenderAccess | None = None,
        gates: str = "",
        **settings: Any,
    ) -> None:
        """`profile`: more of the one profile; `settings`: of the configuration. Needs a running event loop."""
        self.gates, _ = read_gates([gates])
        self.registry = in_tree() if registry is None else registry
        self.config = self._config(profile, settings)
        self.clock, self.metrics = FakeClock(), Metrics()
        self.is_leading = True
        writers = Writers(self, self, self, self, api or NoWrites())
        self.engine: Engine = build_engine(
            self.config, self.registry, writers, self.metrics, self.clock, Tasks(self.metrics), extender_access
        )
        self.recorder = self.a_recorder()
        self.versions = 0

    def _config(self, profile: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> Config:
        profiles = [{"schedulerName": PROFILE, **(profile or {})}]
        document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles, **settings}
        return config_from_dict(document, self.registry, gates=self.gates)

    def reconfigure(self, profile: Mapping[str, Any] | None = None, **settings: Any) -> None:
        """Put another configuration to work, as the reloader does."""
        engine, self.config = self.engine, self._config(profile, settings)
        prepared = engine.profiles.prepare(self.config, self.registry)
        engine.profiles.hand_over(prepared)
        changed = engine.profiles.swap(prepared)
        engine.use(self.config, queue_settings(self.config, engine.frameworks, engine.roster.extenders), changed)

    def a_recorder(self, **settings: Any) -> Recorder:
        document = as_document(self.config, self.registry)
        return Recorder(
            self.engine, lambda: document, lambda: self.is_leading, lambda: self.gates.given, pause=0.0, **settings
        )

    def node(self, name: str, **fields: Any) -> None:
        self.engine.handlers.node_changed(a_node(name, **fields))

    def node_object(self, content: Object) -> None:
        self.engine.handlers.node_changed(node_from_dict(content))

    def pod(self, name: str, spec: Object | None = None, **meta: Any) -> Pod:
        """Let the watch show a new pod."""
        self.versions += 1
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(self.versions), **meta}
        containers = [{"name": "main", "image": "app:1", **(spec or {}).pop("container", {})}]
        content = {"metadata": metadata, "spec": {"schedulerName": PROFILE, "containers": containers, **(spec or {})}}
        pod = as_kept(pod_from_dict(content), raw=self.engine.profiles.resources.raw_pods)
        self.engine.handlers.pod_changed(pod)
        return pod

    def newer(self, pod: Pod, **status: Any) -> Pod:
        """The pod in another version."""
        self.versions += 1
        metadata = msgspec.structs.replace(pod.metadata, resource_version=str(self.versions))
        return msgspec.structs.replace(pod, metadata=metadata, status=msgspec.structs.replace(pod.status, **status))

    async def schedule(self) -> None:
        """Try all pods that can be tried now."""
        while (queued := self.engine.queue.pop_nowait()) is not None:
            self.engine.loop.schedule_one(queued)
            await settle()

    async def recorded(self, path: Path, play: Callable[[], Any], recorder: Recorder | None = None) -> None:
        """Record what happens while `play` runs."""
        parts = (recorder or self.recorder).record()
        members = GzipMembers()
        with path.open("wb") as file:
            file.writelines(members.feed(await anext(parts)))
            await play()
            self.is_leading = False  # which ends a recording in order
            async for part in parts:
                file.writelines(members.feed(part))
            file.write(members.last("it has no end"))
        self.is_leading = True

    def close(self) -> None:
        self.engine.close()

    # --- the writers ---

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        check()
        newest = self.engine.pods[pod.uid]
        self.engine.handlers.pod_changed(self.newer(newest.bound_to(node_name)))
        return ""

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        newest = self.engine.pods.get(pod.uid)
        if newest is not None and nominated_node_name is not None:
            self.engine.handlers.pod_changed(self.newer(newest, nominated_node_name=nominated_node_name))

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        newest = self.engine.pods.get(victim.uid)
        if newest is not None:
            self.engine.handlers.pod_deleted(newest)
        return newest is not None


async def a_busy_hour(stage: Stage, seed: int = 1, pods: int = 200) -> None:
    """Pods of many kinds come and go, some with priority; nodes come, change and go."""
    random_ = random.Random(seed)
    alive: list[str] = []
    for number in range(pods):
        name = f"pod-{seed}-{number}"  # each hour has pods of its own, as a UID is never used again
        spec: Object = {
            "container": {"resources": {"requests": {"cpu": f"{random_.choice((100, 500, 1500))}m", "memory": "1Gi"}}},
            "priority": random_.choice((0, 0, 0, 100)),
        }
        app = random_.choice(("web", "db", "batch"))
        spec |= _kind(random_, number, {"matchLabels": {"app": app}})
        stage.pod(name, spec, labels={"app": app})
        alive.append(name)
        if number % 7 == 0:
            gone = alive.pop(random_.randrange(len(alive)))
            if gone in stage.engine.pods:
                stage.engine.handlers.pod_deleted(stage.engine.pods[gone])
        if number % 40 == 20:
            stage.node(f"late-{number}", allocatable={"cpu": "4", "memory": "16Gi", "pods": 20}, labels={"zone": "c"})
        if number % 40 == 39:
            name = f"late-{number - 19}"
            node = stage.engine.cache.table.node(name)
            assert node is not None
            stage.engine.handlers.node_deleted(node)
        stage.clock.advance(0.3)
        stage.engine.queue.flush_backoff_completed()
        await stage.schedule()


def _kind(random_: random.Random, number: int, selector: Object) -> Object:
    """What makes a pod special, if anything."""
    match random_.randrange(6):
        case 1:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        case 2:
            spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            return {"topologySpreadConstraints": [{**spread, "labelSelector": selector}]}
        case 3:
            return {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
        case 4:
            return {"nodeSelector": {"zone": random_.choice(("a", "b", "nowhere"))}}
        case 5:
            return {"schedulingGates": [{"name": "later"}] if number % 2 else []}
        case _:
            return {}


def with_nodes(stage: Stage, count: int = 12) -> Stage:
    """Half of the nodes in each of two zones, every fourth dedicated."""
    for number in range(count):
        stage.node_object(
            {
                "metadata": {
                    "name": f"node-{number}",
                    "uid": f"node-{number}",
                    "resourceVersion": "1",
                    "labels": {"zone": "ab"[number % 2], "kubernetes.io/hostname": f"node-{number}"},
                },
                "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}] if number % 4 == 3 else []},
                "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "30"}},
            }
        )
    return stage
