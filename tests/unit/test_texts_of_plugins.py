"""What a plugin says without end costs the pod that it is about: no exit of the program passes all of it on.

Each extension point, found by reflection, says a million characters, hostile ones among them, in each way that there
is: as a reason, as a hundred thousand of them, as another one for each node, in what it raises, in a wrong answer.
"""

import inspect
import logging
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final

import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest

from scheduler import framework as fw
from scheduler.api.wording.text import MAX_MESSAGE, MAX_REASON, to_json
from scheduler.cycle.failure import UNSCHEDULABLE
from scheduler.explain.explainer import Explainer
from scheduler.framework.plugin import QueueSortPlugin
from scheduler.framework.status import Code
from scheduler.kube.writes.status import Condition, status_patch
from scheduler.process.logs import JsonFormatter, TextFormatter
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.profile import POINTS
from scheduler.testing import a_node, a_pod
from scheduler.tracing.spans import Spans
from tests.fakes import Unschedulable, a_plugin, settle
from tests.unit.cycle.fakes import EngineUnderTest, an_engine
from tests.unit.serve.page.test_live import live_of, opened

MARK: Final = "zqmark"
HOSTILE: Final = f"\ud800{MARK}\x00\x1b[31m\r\n2026-01-31T12:00:00.000Z INFO Successfully bound \u202e\u2028</script>"
LONG: Final = HOSTILE + "x" * 1_000_000

MAX_LINE: Final = 4 * MAX_MESSAGE * 6
"""Characters of a log line: its message, its fields and a traceback, spelled out."""

Method = Callable[..., Any]


def about_victim(say: Callable[[tuple[Any, ...]], Any], otherwise: Any, *, is_async: bool) -> Method:
    """A method that says something about the victim alone."""

    def method(*args: Any) -> Any:
        pod = next((each for each in args if isinstance(each, fw.Pod)), None)
        return say(args) if pod is not None and pod.name == "victim" else otherwise

    async def awaited(*args: Any) -> Any:
        return method(*args)

    return awaited if is_async else method


def raising(make: Callable[[], BaseException]) -> Callable[[tuple[Any, ...]], Any]:
    def say(_: tuple[Any, ...]) -> Any:
        raise make()

    return say


def a_reason(args: tuple[Any, ...]) -> str:
    """Another one for each node."""
    node = next((each.node.name for each in args if hasattr(each, "node")), "")
    return f"{node}{LONG}"


WAYS: Final[Mapping[str, Callable[[tuple[Any, ...]], Any]]] = {
    "a reason": lambda args: fw.unresolvable(a_reason(args)),
    "a hundred thousand reasons": lambda _: fw.unschedulable(*(f"{MARK} {number}" for number in range(100_000))),
    "an error's reason": lambda args: fw.Status(Code.ERROR, (a_reason(args),), LONG),
    "what it raises": raising(lambda: ValueError(LONG)),
    "what it says of the pod": raising(lambda: fw.AttemptFailed(LONG)),
    "the type that it raises": raising(lambda: type(f"Odd{'x' * 1_000_000}", (Exception,), {})("no")),
    "what it waits for": lambda _: fw.PermitWait(600.0, LONG),
    "a wrong answer": lambda _: LONG,
}


def methods() -> Iterator[tuple[str, type[fw.Plugin], str]]:
    for point, kinds in POINTS.items():
        for kind in kinds:
            if not issubclass(kind, QueueSortPlugin):
                for method in sorted(kind.__abstractmethods__):
                    yield point, kind, method


CASES: Final = [
    pytest.param(kind, method, say, id=f"{kind.__name__}.{method}, {way}")
    for _, kind, method in methods()
    for way, say in WAYS.items()
]


def a_wordy_plugin(kind: type[fw.Plugin], method: str, say: Callable[[tuple[Any, ...]], Any]) -> type[fw.Plugin]:
    is_async = inspect.iscoroutinefunction(getattr(kind, method))
    made = {method: about_victim(say, 0 if kind is fw.ScorePlugin else None, is_async=is_async)}
    if "filter_nodes" in kind.__abstractmethods__ and method == "status_of":
        made["filter_nodes"] = lambda state, pod, nodes, rows: rows * 0 + (pod.name == "victim")
    return a_plugin("Wordy", kind, **made)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts_in(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def is_obeyed(char: str) -> bool:
    """Whether a terminal, or who reads line by line, takes it for more than a character."""
    return unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs") and char != "\n"


class Exits:
    """All that leaves a scheduler, collected."""

    def __init__(self, plugin: type[fw.Plugin], log: Sequence[logging.LogRecord]) -> None:
        self._spans = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._log = log
        stream = EventStream()
        Spans(provider.get_tracer("test"), stream)
        self.scheduler: EngineUnderTest = an_engine(plugin, stream=stream)
        self.scheduler.see(a_node("n0"), a_node("n1"))
        self.live = live_of(self.scheduler)

    async def schedule(self) -> None:
        self.scheduler.see(a_pod("victim"), a_pod("other"))
        await self.scheduler.schedule()
        await self.scheduler.loop.finish(0)
        await settle()

    def log_lines(self) -> Iterator[str]:
        for record in self._log:
            yield TextFormatter().format(record)
            yield JsonFormatter().format(record)

    def patches(self) -> Iterator[bytes]:
        for write in self.scheduler.world.written(Unschedulable):
            condition = Condition("False", UNSCHEDULABLE, write.message)
            yield to_json(status_patch(a_pod("victim"), (condition,), write.nominated, 0.0))

    def records(self) -> Iterator[str]:
        for record in self.scheduler.engine.records.of(a_pod("victim").uid):
            yield from texts_in(msgspec.to_builtins(record, enc_hook=lambda _: None))

    def span_texts(self) -> Iterator[str]:
        for span in self._spans.get_finished_spans():
            yield from texts_in(dict(span.attributes or {}))
            yield span.status.description or ""
            for event in span.events:
                yield from texts_in(dict(event.attributes or {}))

    async def explanation(self) -> bytes:
        report = await Explainer(self.scheduler.engine, self.scheduler.clock).about("default", "victim")
        return msgspec.json.encode(report)

    async def page(self) -> list[str]:
        await self.live.look()
        body, told = await opened(self.live)
        await body.aclose()
        return list(texts_in([data for _, data in told]))


class Collecting(logging.Handler):
    """Keeps what is logged, and leaves none of its texts to pytest, which cannot send half surrogates to its parent."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.log.append(copy(record))
        record.msg, record.args, record.exc_info, record.exc_text = "kept", None, None, None


@pytest.fixture
def log() -> Iterator[list[logging.LogRecord]]:
    logger, handler = logging.getLogger("scheduler"), Collecting()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.log
    logger.setLevel(before)
    logger.removeHandler(handler)


@pytest.mark.parametrize(("kind", "method", "say"), CASES)
async def test_no_exit_passes_on_all_that_a_plugin_says(
    kind: type[fw.Plugin], method: str, say: Callable[[tuple[Any, ...]], Any], log: list[logging.LogRecord]
) -> None:
    exits = Exits(a_wordy_plugin(kind, method, say), log)

    await exits.schedule()

    assert "default/other" in exits.scheduler.world.bound
    for event in exits.scheduler.world.events:
        assert len(event.note) <= MAX_MESSAGE + 1
    for patch in exits.patches():
        assert len(patch) <= 2 * MAX_MESSAGE
        patch.decode()
    for line in exits.log_lines():
        assert len(line) <= MAX_LINE
        assert not any(map(is_obeyed, line))
        line.encode()
    for text in (*exits.records(), *exits.span_texts()):
        assert len(text) <= MAX_MESSAGE + 1
        text.encode()
    assert all(len(text) <= 1025 for text in exits.span_texts())
    assert len(await exits.explanation()) <= 4 * MAX_MESSAGE
    assert all(len(text) <= 301 for text in await exits.page())
    assert MARK not in exposition_of(exits.scheduler)


def exposition_of(scheduler: EngineUnderTest) -> str:
    text = generate_latest(scheduler.metrics.registry).decode()
    assert max(map(len, text.splitlines())) < 1000
    return text


def test_a_wordy_answer_is_found_at_every_extension_point() -> None:
    assert {point for point, _, _ in methods()} == POINTS.keys() - {"queue_sort"}
    assert len(LONG) > MAX_REASON
