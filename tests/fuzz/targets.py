"""What is fuzzed: everything that reads what others wrote. Each target takes any bytes, and its own errors stay inside.

Whatever comes out is a bug: an error of another type, or a broken promise, as an AssertionError.
Selectors, durations and answers of extenders are not here: tests.conformance.values and .answers compare them with Go.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml

from plugins import IN_TREE
from plugins.dynamic_resources.allocation.selectors import Expression, SelectorError, view_of
from plugins.dynamic_resources.cel.values import parse_version, quantity
from scheduler.api.decoding import Decoder, Unreadable, convert, reread
from scheduler.api.devices import Device, DeviceClass, ResourceClaim, ResourceSlice
from scheduler.api.objects import Node, Taint, Toleration
from scheduler.api.pods.pod import Pod, decode_pod
from scheduler.api.pods.requests import allocatable_of
from scheduler.api.pods.tolerations import tolerates
from scheduler.api.quantities.go_quantity import INT64_MAX, INT64_MIN, GoQuantity
from scheduler.api.quantities.quantity import is_plain, parse_quantity, to_milli, to_value
from scheduler.api.quota.kueue import ClusterQueue, Cohort, ResourceFlavor
from scheduler.api.selectors import pod_selector_keys, pod_selects
from scheduler.api.storage.csi_translation import TranslationError, inline_handle, plugin_of, translated
from scheduler.api.storage.volumes import PersistentVolume
from scheduler.api.unstructured import Unstructured, unstructured_hook
from scheduler.api.versions import is_newer
from scheduler.api.wording.folding import fold, unfolded
from scheduler.api.wording.text import to_json
from scheduler.config.documents import Document, parse_documents
from scheduler.config.load import config_from_dict
from scheduler.framework.errors import ConfigError
from scheduler.framework.events import PERSISTENT_VOLUME_CLAIM
from scheduler.framework.nodes.resources import KNOWN, STRUCTS, parse_resource
from scheduler.kube.http.client import Reply
from scheduler.kube.http.http1 import Answer, AnswerReader, BadAnswer
from scheduler.kube.informers.intake import DELETED, Intake, Restored, node_intake, object_intake, pod_intake
from scheduler.kube.informers.watch_stream import WatchResponse
from scheduler.kube.writes.api_writer import PluginWriter
from scheduler.kube.writes.binder import ApiBinder
from scheduler.kube.writes.evictor import ApiEvictor
from scheduler.kube.writes.status import PodStatuses
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.quota.apis.kueue_flavors import NoFlavor, choose
from scheduler.quota.apis.kueue_quotas import quotas_of
from scheduler.quota.tree import ShareTree
from scheduler.simulate.cluster import SimulatedCluster, cluster_of
from scheduler.simulate.output import as_json, as_text
from scheduler.simulate.what_if.answers import answered
from scheduler.simulate.what_if.questions import Questions
from scheduler.testing import a_pod
from tests.fuzz import documents as known
from tests.fuzz.hostile import RAW, TEXTS, mutated, of_bytes, pieces, spoilt, text
from tests.unit.kube.fake_api import FakeHandlers, FakeObjectHandlers
from tests.unit.kube.writes.script import end_of

KINDS: Final[tuple[tuple[Any, Sequence[known.Json]], ...]] = (
    (Pod, known.PODS),
    (Node, known.of_kind("Node")),
    (ResourceClaim, known.CLAIMS),
    (ResourceSlice, known.SLICES),
    (DeviceClass, known.CLASSES),
    (PersistentVolume, known.of_kind("PersistentVolume")),
    (Unstructured, known.PODS),
)
_DECODERS: Final = [(Decoder[Any](kind, unstructured_hook), seeds) for kind, seeds in KINDS]


def objects(data: bytes) -> None:
    """Each kind of object from JSON, and all that is derived from it."""
    dice = of_bytes(data)
    decoder, seeds = dice.choice(_DECODERS)
    try:
        found = decoder.decode(mutated(dice, dice.choice(seeds)))
    except Unreadable:
        return
    try:
        _derive(found)
    except (ValueError, TranslationError) as error:
        if type(error) not in (ValueError, TranslationError):
            raise
    if isinstance(found, ResourceClaim | DeviceClass):
        to_json({"object": found})


def _derive(found: Any) -> None:
    if isinstance(found, Pod):
        _ = (found.host_ports, found.affinity_terms, found.storage)
        for volume in found.spec.volumes or ():
            if plugin_of(volume) is not None:
                inline_handle(volume)
        pod_selector_keys(found)
        pod_selects(found, {"zone": "a"}, "n")
        _ = found.resources
    elif isinstance(found, Node):
        allocatable_of(found.status.allocatable)
    elif isinstance(found, PersistentVolume) and plugin_of(found.spec) is not None:
        translated(found)
    elif isinstance(found, ResourceSlice):
        for device in found.spec.devices or ():
            try:
                view_of(found.spec.driver, device)
            except SelectorError:
                continue


_KUEUE: Final[tuple[tuple[Decoder[Any], known.Json], ...]] = (
    (Decoder[Any](ClusterQueue), known.CLUSTER_QUEUE),
    (Decoder[Any](Cohort), known.COHORT),
    (Decoder[Any](ResourceFlavor), known.RESOURCE_FLAVOR),
)
_ASKING: Final = convert(known.PODS[0], Pod)


def kueue(data: bytes) -> None:
    """Kueue's objects: whatever they declare makes a tree without problems, and a pod gets flavors or a reason."""
    dice = of_bytes(data)
    found: list[Any] = []
    for decoder, seed in _KUEUE:
        try:
            found.append(decoder.decode(mutated(dice, seed) if dice.random() < 0.7 else to_json(seed)))
        except Unreadable:
            return
    cluster_queue, cohort, flavor = found
    quotas = quotas_of([cluster_queue], [cohort], {flavor.metadata.name: flavor})
    tree = ShareTree(quotas.shares)
    assert not tree.problems
    for queue in quotas.queues.values():
        if queue.share in tree.shares:
            try:
                choose(queue, {"cpu": 1000, "example.com/gpu": 1}, _ASKING, tree)
            except NoFlavor:
                continue


def bytes_as_json(data: bytes) -> None:
    """Anything at all as JSON; what was folded is unfolded to what it was."""
    for decoder, _ in _DECODERS:
        try:
            decoder.decode(data)
        except Unreadable:
            continue
    folded = fold(data)
    assert b"\\\xff" in data or _escapes_oddly(data) or unfolded(folded) == data


def _escapes_oddly(data: bytes) -> bool:
    """A backslash before a byte that is no character: no JSON, and no promise."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"\\" in data
    return False


_metrics: Final = Metrics()


def replies(data: bytes) -> None:
    """Answers to calls: what comes next is decided, and only errors of ours are raised."""
    dice = of_bytes(data)
    body = mutated(dice, dice.choice(known.PODS)) if dice.random() < 0.7 else data
    reply = Reply(dice.choice((200, 201, 404, 409, 429, 500)), body)
    _ = reply.message
    pod, wanted = a_pod("web", uid="u-1"), {"metadata": {"annotations": {"a": "b"}}}
    for outcomes in ([reply], [Reply(500, b"{}"), Reply(409, b"{}"), reply]):
        end_of(outcomes, lambda client: ApiBinder(client, _metrics).bind(pod, "n1"))
        end_of(outcomes, lambda client: ApiEvictor(client, PodStatuses(client, Tasks(_metrics))).evict(pod, pod, ""))
        end_of(outcomes, lambda client: PluginWriter(client).patch(PERSISTENT_VOLUME_CLAIM, "web", "default", wanted))
    try:
        decode_pod(body)
    except Unreadable:
        return


def _intakes() -> list[tuple[Intake[Any], Sequence[known.Json]]]:
    handlers, others, metrics = FakeHandlers(), FakeObjectHandlers(), Metrics()
    claims, budgets = "resource.k8s.io/ResourceClaim", "budgets.v1.example.com"
    return [
        (pod_intake(handlers, metrics), known.PODS),
        (pod_intake(handlers, metrics, raw=True), known.PODS),
        (node_intake(handlers, metrics), known.NODES),
        (object_intake(claims, parse_resource(claims), others, metrics), known.CLAIMS),
        (object_intake(budgets, parse_resource(budgets), others, metrics), known.CLASSES),
    ]


def watch_and_lists(data: bytes) -> None:
    """Lines of a watch and pages of lists, one after the other, as an intake gets them."""
    dice = of_bytes(data)
    intake, seeds = dice.choice(_intakes())
    seed = dice.choice(seeds)
    intake.start_listing()
    for _ in range(dice.randint(1, 5)):
        whole = {**seed, "metadata": {**seed["metadata"], "resourceVersion": str(dice.randint(1, 20))}}
        if dice.random() < 0.7:
            event = {"type": dice.choice(("ADDED", "MODIFIED", DELETED, "BOOKMARK", "ERROR")), "object": whole}
            version = intake.from_line(mutated(dice, event))
            assert version is None or isinstance(version, str)
            continue
        try:
            page = intake.read_page(mutated(dice, {"metadata": {"resourceVersion": "9"}, "items": [whole, whole]}))
            version = page.metadata.resource_version
            for item in page.items:
                if intake.difference(item, version):
                    intake.take(item)
                intake.is_missing(item.metadata.uid, version)
        except (Unreadable, Restored):
            continue


class _Stream:
    status, headers, closed = 200, Mapping, False

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.content = self
        self._parts = parts

    async def iter_any(self) -> Any:
        for part in self._parts:
            yield part


def watch_stream(data: bytes) -> None:
    """A stream in pieces: each whole line is taken once, in order."""
    dice = of_bytes(data)
    stream = spoilt(dice, data * dice.randint(1, 3)) + dice.choice((b"", b"\n", b"\n\n"))
    taken: list[bytes] = []

    def take(line: bytes | bytearray) -> str | None:
        taken.append(bytes(line))
        return dice.choice((None, "", "7"))

    async def read() -> None:
        response = WatchResponse(_Stream(pieces(dice, stream)), take, lambda: None)  # type: ignore[arg-type]
        async for for_kopf in response.iter_chunked(1):
            assert for_kopf.endswith(b"\n")

    _finish(read())
    assert taken == [line for line in stream.split(b"\n")[:-1] if line]


def _finish(coroutine: Any) -> None:
    """Run a coroutine that waits for nothing but its turn."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        return


def http_answers(data: bytes) -> None:
    """An answer is the same however its bytes arrive."""
    dice = of_bytes(data)
    body = data[: dice.randint(0, 60)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body, b"x") if part) + b"0\r\n\r\n"
    length = dice.choice((str(len(body)).encode(), b"0", b"-1", b"9" * 5000, b"1e3", b"\xb2", b""))
    head = dice.choice(
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n%b" % (length, body),
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nRetry-After: 3\r\n\r\n" + chunked,
            b"HTTP/1.0 429 Slow\r\nRetry-After: %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % length,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            data,
        )
    )
    answer = spoilt(dice, head) if dice.random() < 0.6 else head

    assert _read([answer]) == _read(pieces(dice, answer)) == _read([answer[i : i + 1] for i in range(len(answer))])


def _read(parts: Iterable[bytes]) -> tuple[int, bytes, str] | str | None:
    reader = AnswerReader()
    found: Answer | None = None
    try:
        for part in parts:
            found = reader.feed(part)
            if found is not None:
                return found.status, found.body, found.retry_after
    except BadAnswer:
        return "bad"
    return None


_QUANTITY = "0123456789.eE+-numkMGTPKi "


def quantities(data: bytes) -> None:
    """Numbers with units: parsed or refused, and what is parsed can be used."""
    dice = of_bytes(data)
    written: Any = (
        text(dice, _QUANTITY) if dice.random() < 0.9 else dice.choice((1.5, 1e300, -0.0, 2**70, True, 10**4000))
    )
    try:
        nanos, exact = parse_quantity(written), GoQuantity.parse(written)
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        return
    for amount in (exact, exact + exact, exact.raised_to(exact + exact)):
        assert INT64_MIN <= amount.value() <= INT64_MAX
        assert INT64_MIN <= amount.milli() <= INT64_MAX
    assert not is_plain(nanos) or (to_value(nanos), to_milli(nanos)) == (exact.value(), exact.milli())
    assert parse_quantity(f"{nanos}n") == nanos
    assert quantity(written)


def taints(data: bytes) -> None:
    """Taints and tolerations of any text."""
    dice = of_bytes(data)

    def word(*usual: str) -> str:
        return dice.choice((*usual, *TEXTS))

    taint = Taint(key=word("a", "b"), value=word("", "x", "5"), effect=word("NoSchedule", "NoExecute"))
    toleration = Toleration(
        key=word("a", ""),
        operator=word("Exists", "Equal", "", "Gt", "Lt"),
        value=word("x", "5"),
        effect=word("", "NoSchedule"),
    )
    assert tolerates(toleration, taint) in (True, False)


def versions(data: bytes) -> None:
    """Resource versions of any text have one order; semantic versions are read or refused."""
    dice = of_bytes(data)
    one, other = (text(dice, "0123456789") for _ in range(2))
    assert is_newer(one, other) + is_newer(other, one) + (one == other) == 1
    try:
        first, second = (parse_version(text(dice, "0123456789.-+ab")) for _ in range(2))
    except ValueError:
        return
    assert first.compared_to(second) == -second.compared_to(first)


_CEL: Final = (
    "device",
    ".",
    "attributes",
    "capacity",
    '["d"]',
    "driver",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    '"a"',
    '"\\ud800"',
    "'x'",
    "1",
    "-9223372036854775808",
    "1.5e400",
    "true",
    "null",
    "quantity",
    "semver",
    "isSemver",
    "compareTo",
    "matches",
    "exists",
    "all",
    "map",
    "filter",
    "size",
    "x",
    "in",
    "+",
    "-",
    "*",
    "/",
    "%",
    "b'\\xff'",
    'r"(a+)+$"',
    "//",
    "optional.of",
    "orValue",
    "cel.bind",
    ".split",
    "string(",
    "int(",
    "bytes(",
    "timestamp(",
    "duration(",
    " ",
    "\n",
    "é",
    "\x00",
)
_DEVICES: Final = [device for each in known.SLICES for device in each["spec"].get("devices", ())]
_EXPRESSIONS: Final = (
    'device.attributes["d"].model == "A100"',
    'device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.driver == "d" && device.attributes["d"].exists(k, k == "x")',
    'semver("1.2.3").isLessThan(semver("2.0.0"))',
    '"d" in device.attributes ? device.attributes["d"].size() > 0 : false',
    'device.attributes["d"].name.matches("^(a|b)+$")',
)


def cel(data: bytes) -> None:
    """Expressions over devices, of any text."""
    dice = of_bytes(data)
    if dice.random() < 0.5:
        expression = "".join(dice.choices(_CEL, k=dice.randint(1, 12)))
    else:
        expression = spoilt(dice, dice.choice(_EXPRESSIONS).encode()).decode(errors="replace")
    try:
        device = reread(dice.choice(_DEVICES), Device)
        Expression(expression).matches(view_of("d", device))
    except SelectorError:
        return


def config_files(data: bytes) -> None:
    """The configuration file, as JSON or YAML."""
    dice = of_bytes(data)
    written = mutated(dice, dice.choice(known.CONFIGS))
    _configure(written.decode(errors="replace"))
    try:
        dumped = yaml.safe_dump(msgspec.json.decode(written))
    except (ValueError, RecursionError):  # the fuzz's own
        return
    _configure(spoilt(dice, dumped.encode()).decode(errors="replace"))


def _configure(written: str) -> None:
    try:
        for document in parse_documents(written, "a.yaml"):
            config_from_dict(document.value, IN_TREE)
    except ConfigError as error:
        lines = error.problems
    else:
        return
    assert all(line.isprintable() for line in lines)


_SCALARS: Final = (
    *TEXTS,
    "&a",
    "*a",
    "!!int 3",
    "!!binary x",
    "<<: *a",
    "- ",
    "? ",
    ": ",
    "|\n  x",
    "0x" + "f" * 5000,
    "1_0",
    "[",
    "]",
    "{",
    "}",
    ",",
    "#",
    "'",
    '"',
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "\t",
    "\n",
    "\n  ",
    "@",
    "`",
    "[*a, *a, *a, *a, *a, *a, *a, *a, *a]",
    "key: &b",
)


def yaml_files(data: bytes) -> None:
    """Documents of any text, as objects to be simulated."""
    dice = of_bytes(data)
    written = "".join(dice.choices(_SCALARS, k=dice.randint(1, 15)))
    if dice.random() < 0.4:
        written = mutated(dice, dice.choice(dice.choice(KINDS)[1])).decode(errors="replace")
    problems: list[str] = []
    try:
        found = cluster_of(parse_documents(written, "a.yaml"), problems)
        found.others.take({name: resource for name, resource in KNOWN.items() if name in STRUCTS})
    except ConfigError:
        return


_MAKES: Final = 20
"""Pods that a workload is asked for at most: more would only take time."""


def workloads(data: bytes) -> None:
    """Workloads and what admission reads, to be simulated: what is made of them, and what would be if."""
    dice = of_bytes(data)
    documents = []
    for seed in (*known.NODES, *dice.sample(known.WORKLOADS, 3), *dice.sample(known.ADMISSION, 3)):
        written = mutated(dice, seed) if dice.random() < 0.7 else msgspec.json.encode(seed)
        try:
            documents += parse_documents(written.decode(errors="replace"), "a.json")
        except ConfigError:
            continue
    problems: list[str] = []
    try:
        cluster = cluster_of([Document(each.place, _few(each.value)) for each in documents], problems)
    except ConfigError:
        return
    assert all(isinstance(problem, str) for problem in (*problems, *cluster.notes))
    names = [node.name for node in cluster.nodes]
    if dice.random() < 0.3 and names and not problems:
        _ask(dice, cluster, names)


def _few(value: Any) -> Any:
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, dict):
        return value
    counts = {
        key: min(spec[key], _MAKES) for key in ("replicas", "parallelism", "completions") if type(spec.get(key)) is int
    }
    return {**value, "spec": {**spec, **counts}}


def _ask(dice: random.Random, cluster: SimulatedCluster, names: list[str]) -> None:
    drained, removed, like = (dice.choice(names) for _ in range(3))
    questions = Questions(
        count=dice.randint(1, 3),
        of=dice.choice(("", "deployment", "statefulsets/statefulset", "job.batch/default/job")),
        drain=(drained,),
        remove=(removed,) if removed != drained else (),
        add=dice.randint(0, 2),
        like=like,
    )
    try:
        told = answered(cluster, questions, _config, IN_TREE, explain=dice.random() < 0.2)
    except ConfigError:
        return
    assert "".join(as_json(told))
    assert as_text(told, explain=False)


_config: Final = config_from_dict(
    {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}, IN_TREE
)

TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    target.__name__.replace("_", "-"): target
    for target in (
        objects,
        kueue,
        bytes_as_json,
        replies,
        watch_and_lists,
        watch_stream,
        http_answers,
        quantities,
        taints,
        versions,
        cel,
        config_files,
        yaml_files,
        workloads,
    )
}

SEEDS: Final = RAW
