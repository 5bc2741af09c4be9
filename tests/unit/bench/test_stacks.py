import pytest

from tests.bench.stacks import Part, hottest, parse, part_of, shorten, table

LOOP = "SchedulingLoop.run (scheduler/cycle/loop.py:110)"
SCHEDULE = "Algorithm.schedule (scheduler/cycle/algorithm.py:84)"
SCORE = "Framework.run_score (scheduler/runtime/framework.py:217)"
SEND = "Events._send_from (scheduler/kube/writes/events.py:190)"
CALL = "Client.call (scheduler/kube/http/client.py:164)"
REQUEST = "ClientSession._request (aiohttp/client.py:558)"


@pytest.mark.parametrize(
    ("stack", "group", "detail"),
    [
        pytest.param((LOOP, SCHEDULE, SCORE, "score (plugins/x.py:1)"), "decision", "PreScore and Score", id="plugin"),
        pytest.param((LOOP, SCHEDULE, SCORE, "inc (prometheus_client/metrics.py:1)"), "metrics", None, id="metrics"),
        pytest.param((LOOP, SCHEDULE), "decision", "everything else", id="decision"),
        pytest.param((LOOP,), "binding", "the loop itself", id="loop"),
        pytest.param(
            ("ApiBinder.bind (scheduler/kube/writes/binder.py:9)", CALL, REQUEST), "client", "bindings", id="bind"
        ),
        pytest.param((SEND, CALL, REQUEST), "client", "Events", id="sent event"),
        pytest.param((LOOP, "Events.record (scheduler/kube/writes/events.py:120)"), "events", "", id="made event"),
        pytest.param(("data_received (aiohttp/client_proto.py:3)",), "client", "answers, sockets and TLS", id="answer"),
        pytest.param(("Intake.from_line (scheduler/kube/informers/intake.py:159)",), "watch", "decoding", id="watch"),
        pytest.param(("Runner.run (asyncio/runners.py:86)",), "interpreter and event loop", "event loop", id="wait"),
        pytest.param(("gc_collect_main (python3.11)",), "garbage collector", "", id="native"),
        pytest.param(("main (elsewhere.py:1)",), "interpreter and event loop", "", id="unknown"),
    ],
)
def test_a_stack_belongs_to_the_innermost_part_that_is_known(
    stack: tuple[str, ...], group: str, detail: str | None
) -> None:
    part = part_of(stack)

    assert part.group == group
    assert detail is None or part == Part(group, detail)


@pytest.mark.parametrize(
    ("frame", "short"),
    [
        ("f (/home/me/loadmaster/scheduler/kube/http/client.py:1)", "f (scheduler/kube/http/client.py:1)"),
        ("f (/x/.venv/lib/python3.11/site-packages/aiohttp/client.py:2)", "f (aiohttp/client.py:2)"),
        ("f (/usr/lib/python3.11/asyncio/events.py:3)", "f (asyncio/events.py:3)"),
        ("f (<string>:2)", "f (<string>:2)"),
    ],
)
def test_a_frame_names_its_file_from_the_package_on(frame: str, short: str) -> None:
    assert shorten(frame) == short


def test_waiting_is_not_work() -> None:
    assert list(parse("a;b 3\na;epoll_pwait (libc.so.6) 7\n")) == [(("a", "b"), 3)]


def test_what_is_not_a_stack_is_refused() -> None:
    with pytest.raises(ValueError, match="not a folded stack: 'a;b'"):
        list(parse("a;b\n"))


def test_the_table_shares_the_time_of_a_pod_among_groups_and_their_parts() -> None:
    stacks = [((LOOP, SCHEDULE, SCORE), 60), ((LOOP, SCHEDULE), 20), ((SEND, CALL), 20)]

    lines = table(stacks, 1_000).splitlines()

    assert lines[1].split() == ["decision", "80.0", "%", "800"]
    assert lines[2].split() == ["PreScore", "and", "Score", "60.0", "%", "600"]
    assert "client" in lines[4]
    assert lines[-3].split()[-3:] == ["60.0", "%", "600"]
    assert hottest(stacks)[SCORE] == 60
