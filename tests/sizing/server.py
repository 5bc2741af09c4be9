"""A simulated API server for clusters that no machine at hand could hold: lists by page, watches, bindings, Events.

    python -m tests.sizing.server DIRECTORY PORT --nodes 100000 --pods 300000

DIRECTORY has the certificate and the tokens of `tests.controlplane.credentials`. It speaks HTTPS, gzips large lists,
sends bookmarks, and lets each node report its status every five minutes. It admits, validates and authorizes
everything, keeps no Events, and its lists are not of one moment: what a scheduler costs does not depend on these.
"""

import argparse
import asyncio
import ssl
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web

from scheduler.assembly.scheduling import loop_factory
from scheduler.framework.nodes.resources import NODES, PODS, ApiResource
from tests.controlplane.credentials import Credentials
from tests.sizing.objects import WATCHED, Object, Size
from tests.sizing.store import Collection, Versions

HEARTBEAT_SECONDS: Final = 300.0
"""The kubelet's nodeStatusReportFrequency."""

BOOKMARK_SECONDS: Final = 60.0
EVENTS_AT_ONCE: Final = 100
"""Written to a watch; a longer piece would keep the event loop from everything else."""

GZIP_BYTES: Final = 128 << 10
"""The API server compresses longer answers."""

LEASES: Final = ApiResource("coordination.k8s.io", "v1", "leases")
CLUSTERWIDE: Final = {
    "Namespace", "Node", "PersistentVolume", "CSINode", "CSIDriver", "StorageClass", "VolumeAttachment", "DeviceClass",
    "ResourceSlice",
}  # fmt: skip
VERBS: Final = ["create", "get", "list", "patch", "update", "watch"]


class SimulatedServer:
    """The state, and the answers."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._versions = Versions(size.nodes + size.pods + 1_000_000)
        made = {family.resource: family for family in size.families()}
        self._collections: dict[ApiResource, Collection] = {}
        for resource, kind in (*WATCHED, (LEASES, "Lease")):
            family = made.get(resource)
            self._collections[resource] = Collection(
                resource, kind, self._versions, *((family.count, family.make) if family else ())
            )
        self.pods = self._collections[PODS]
        self.nodes = self._collections[NODES]
        self._leases = self._collections[LEASES]

    def app(self) -> web.Application:
        """All paths. The more special ones come first."""
        app = web.Application(client_max_size=32 << 20)
        routes = app.router
        routes.add_get("/api", _json({"versions": ["v1"]}))
        routes.add_get("/apis", _json({"groups": self._groups()}))
        routes.add_get("/readyz", _json({}))
        for version_path in {resource.version_path for resource in self._collections}:
            routes.add_get(version_path, _json({"resources": self._served(version_path)}))
        allowed = _json({"status": {"allowed": True}}, 201)
        for review in ("selfsubjectaccessreviews", "subjectaccessreviews"):
            routes.add_post(f"/apis/authorization.k8s.io/v1/{review}", allowed)
        of_pods = "/api/v1/namespaces/{namespace}/pods"
        routes.add_post(of_pods, self._create_pod)
        routes.add_get(of_pods + "/{name}", partial(self._get, self.pods))
        routes.add_post(of_pods + "/{name}/binding", self._bind)
        routes.add_patch(of_pods + "/{name}/status", partial(self._get, self.pods))
        of_leases = f"{LEASES.version_path}/namespaces/{{namespace}}/leases"
        routes.add_get(of_leases, partial(self._read, self._leases))
        routes.add_post(of_leases, self._put_lease)
        routes.add_get(of_leases + "/{name}", partial(self._get, self._leases))
        routes.add_put(of_leases + "/{name}", self._put_lease)
        routes.add_post("/apis/events.k8s.io/v1/namespaces/{namespace}/events", _json({}, 201))
        routes.add_patch("/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}", _json({}))
        for resource, collection in self._collections.items():
            routes.add_get(resource.path, partial(self._read, collection))
        return app

    async def beat(self, seconds: float = HEARTBEAT_SECONDS) -> None:
        """Let the nodes report, each once in so many seconds, one after the other."""
        number = 0
        loop = asyncio.get_running_loop()
        due = loop.time()
        while self._size.nodes:
            due += seconds / self._size.nodes
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            self.nodes.beat(number, partial(_report, _now()))
            number = (number + 1) % self._size.nodes

    # --- discovery ---

    def _groups(self) -> list[Object]:
        groups = {resource.group: resource.version for resource in self._collections if resource.group}
        return [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{version}", "version": version}],
                "preferredVersion": {"groupVersion": f"{group}/{version}", "version": version},
            }
            for group, version in groups.items()
        ]

    def _served(self, version_path: str) -> list[Object]:
        return [
            {
                "name": resource.plural,
                "singularName": collection.kind.lower(),
                "namespaced": collection.kind not in CLUSTERWIDE,
                "kind": collection.kind,
                "verbs": VERBS,
            }
            for resource, collection in self._collections.items()
            if resource.version_path == version_path
        ]

    # --- reads ---

    async def _read(self, collection: Collection, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") in ("1", "true"):
            return await self._watch(collection, request)
        return await self._list(collection, request)

    async def _list(self, collection: Collection, request: web.Request) -> web.Response:
        selector = request.query.get("fieldSelector", "")
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 0))
        version = self._versions.newest
        items: list[bytes] = []
        following = 0
        if not selector.startswith("metadata.name="):
            items, following = collection.page(start, limit, pending_only=selector == "spec.nodeName=")
        elif (key := f"{request.match_info.get('namespace', '')}/{selector.partition('=')[2]}") in collection.written:
            items = [orjson.dumps(collection.written[key])]
        meta = {"resourceVersion": str(version), **({"continue": str(following)} if following else {})}
        head = {"kind": f"{collection.kind}List", "apiVersion": "v1", "metadata": meta}
        body = b'%b,"items":[%b]}' % (orjson.dumps(head)[:-1], b",".join(items))
        headers = {"Content-Type": "application/json"}
        if len(body) > GZIP_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = await asyncio.to_thread(_gzipped, body)
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def _watch(self, collection: Collection, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        changed = asyncio.Event()
        collection.watchers.add(changed)
        try:
            seen = int(request.query.get("resourceVersion") or 0)
            if not seen:
                for obj in list(collection.written.values()):
                    await response.write(orjson.dumps({"type": "ADDED", "object": obj}) + b"\n")
                seen = self._versions.newest
            while True:
                events = collection.since(seen)
                if events is None:
                    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                    await response.write(orjson.dumps({"type": "ERROR", "object": gone}) + b"\n")
                    return response
                found = list(islice(events, EVENTS_AT_ONCE))
                if found:
                    seen = found[-1][0]
                    await response.write(b"".join(line for _, line in found))
                    continue
                changed.clear()
                try:
                    async with asyncio.timeout(BOOKMARK_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    seen = self._versions.newest
                    bookmark = {"kind": collection.kind, "metadata": {"resourceVersion": str(seen)}}
                    await response.write(orjson.dumps({"type": "BOOKMARK", "object": bookmark}) + b"\n")
        except ConnectionError:
            return response
        finally:
            collection.watchers.discard(changed)

    async def _get(self, collection: Collection, request: web.Request) -> web.Response:
        found = collection.written.get(_key(request))
        return _answer(found) if found else _status(404)

    # --- writes ---

    async def _create_pod(self, request: web.Request) -> web.Response:
        obj = orjson.loads(await request.read())
        obj["metadata"].setdefault("namespace", request.match_info["namespace"])
        obj["status"] = {"phase": "Pending", "qosClass": "Burstable"}
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        if key in self.pods.written:
            return _status(409)
        return _answer(self.pods.write(key, obj), 201)

    async def _bind(self, request: web.Request) -> web.Response:
        key = _key(request)
        pod = self.pods.written.get(key)
        if pod is None:
            return _status(404)
        if pod["spec"].get("nodeName"):
            return _status(409)
        binding = orjson.loads(await request.read())
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _now()}
        status = {**pod["status"], "conditions": [scheduled]}
        self.pods.write(key, {**pod, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}, "status": status})
        return _status(201)

    async def _put_lease(self, request: web.Request) -> web.Response:
        lease = orjson.loads(await request.read())
        key = f"{request.match_info['namespace']}/{lease['metadata']['name']}"
        known = self._leases.written.get(key)
        if request.method == "POST":
            return _status(409) if known else _answer(self._leases.write(key, lease), 201)
        if known is None:
            return _status(404)
        if lease["metadata"].get("resourceVersion") != known["metadata"]["resourceVersion"]:
            return _status(409)
        return _answer(self._leases.write(key, lease))


def _report(now: str, node: Object) -> None:
    node["status"] = {
        **node["status"],
        "conditions": [{**each, "lastHeartbeatTime": now} for each in node["status"]["conditions"]],
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _gzipped(body: bytes) -> bytes:
    """As quickly as the API server does it: level 1."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def _key(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


def _answer(obj: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(obj), status=status, content_type="application/json")


def _status(code: int) -> web.Response:
    status = "Success" if code < 400 else "Failure"
    return _answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": status, "code": code}, code)


def _json(content: Any, status: int = 200) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return _answer(content, status)

    return answer


async def serve(size: Size, credentials: Credentials, port: int) -> None:
    """Answer until cancelled."""
    server = SimulatedServer(size)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(credentials.server_cert, credentials.server_key)
    runner = web.AppRunner(server.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    await server.beat()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.sizing.server", description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where the certificate and the keys are")
    parser.add_argument("port", type=int)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    options = parser.parse_args(argv)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(Size(options.nodes, options.pods), Credentials(options.directory, {}), options.port))


if __name__ == "__main__":
    main()
