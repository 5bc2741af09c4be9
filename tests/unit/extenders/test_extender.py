"""One extender: which pods it wants, what its failures count as, and who is told."""

import logging

import pytest

from scheduler.api.objects import Container, ResourceRequirements
from scheduler.config.extenders import ManagedResource
from scheduler.extenders.extender import MAX_TEXT, OUT_OF_TEXT, CallFailed, Extender
from scheduler.framework.extenders import ExtenderError
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream
from scheduler.testing import a_pod
from tests.fakes import sample
from tests.fakes.extenders import URL, FakeExtender, an_extender, extenders_of, failing, names_of

GPU = (ManagedResource("example.com/gpu"), ManagedResource("example.com/fpga"))


def made(fake: FakeExtender, metrics: Metrics | None = None) -> Extender:
    return Extender(fake.settings, fake, metrics or Metrics(), EventStream())


def no_nodes(_: object) -> list[bytes]:
    return []


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(a_pod(requests={"example.com/gpu": 1}), True, id="a container asks for it"),
        pytest.param(a_pod(requests={"example.com/gpu": 0}), True, id="even for none of it"),
        pytest.param(a_pod(requests={"cpu": 1}), False, id="for something else"),
        pytest.param(
            a_pod(init_containers=[Container(resources=ResourceRequirements(requests={"example.com/fpga": 1}))]),
            True,
            id="an init container asks for another one",
        ),
        pytest.param(a_pod(containers=[Container()]), False, id="a container without resources"),
        pytest.param(a_pod(overhead={"example.com/gpu": 1}), False, id="overhead is nobody's request"),
    ],
)
def test_an_extender_is_interested_in_pods_that_ask_for_what_it_manages(pod: object, wanted: bool) -> None:
    assert made(an_extender(managed_resources=GPU)).is_interested(pod) is wanted  # type: ignore[arg-type]
    assert made(an_extender()).is_interested(pod) is True  # type: ignore[arg-type]


def test_ignorable_extenders_come_last_and_only_those_with_a_say_are_asked() -> None:
    fakes = [
        an_extender(url_prefix="http://a", ignorable=True),
        an_extender(url_prefix="http://b", managed_resources=GPU),
        an_extender(url_prefix="http://c", filter_verb="", prioritize_verb="", preempt_verb="", bind_verb="bind"),
        an_extender(url_prefix="http://d"),
    ]
    extenders = extenders_of(*fakes)

    assert names_of(list(extenders)) == ["http://b", "http://c", "http://d", "http://a"]
    assert names_of(extenders.interested(a_pod())) == ["http://c", "http://d", "http://a"]
    assert names_of(extenders.asked_about(a_pod())) == ["http://d", "http://a"]
    binder = extenders.binder_of(a_pod())
    assert binder is not None
    assert binder.name == "http://c"
    assert not extenders.need_whole_nodes
    assert extenders_of(an_extender(node_cache_capable=False)).need_whole_nodes


async def test_calls_are_counted_by_what_they_came_to() -> None:
    metrics = Metrics()
    fake = an_extender({"filter": lambda _: b"<html>"})
    extender = made(fake, metrics)
    for _ in range(2):
        with pytest.raises(ExtenderError):
            await extender.filter(b"{}", ["n"], no_nodes)
    fake.answers["filter"] = failing()
    with pytest.raises(ExtenderError):
        await extender.filter(b"{}", ["n"], no_nodes)
    fake.answers["filter"] = lambda _: {"Error": "no"}
    with pytest.raises(ExtenderError, match="no"):
        await extender.filter(b"{}", ["n"], no_nodes)
    fake.answers.clear()
    await extender.filter(b"{}", ["n"], no_nodes)

    def count(result: str) -> float:
        name = "loadmaster_extender_calls_total"
        return sample(metrics, name, extender=URL, verb="filter", result=result)

    assert {result: count(result) for result in ("answer", "connection", "error", "ok")} == {
        "answer": 2,
        "connection": 1,
        "error": 1,
        "ok": 2,
    }


async def test_the_log_has_the_first_failure_and_the_recovery(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fake = an_extender({"prioritize": failing()})
    extender = made(fake)
    for _ in range(3):
        with pytest.raises(CallFailed):
            await extender.prioritize(b"{}", ["n"], no_nodes)
    fake.answers.clear()
    await extender.prioritize(b"{}", ["n"], no_nodes)

    assert [record.message for record in caplog.records] == ["An extender fails", "An extender answers again"]


async def test_of_endless_reasons_only_so_many_are_read() -> None:
    failed = {f"n{i}": f"{i} " + "x" * (MAX_TEXT // 4) for i in range(6)}
    fake = an_extender({"filter": lambda _: {"NodeNames": [], "FailedNodes": failed}})

    answer = await made(fake).filter(b"{}", list(failed), no_nodes)

    texts = [status.message for status in answer.refusals.values()]
    assert texts.count(OUT_OF_TEXT) == 3
    assert sum(map(len, texts)) < 2 * MAX_TEXT


async def test_a_node_named_twice_counts_once() -> None:
    fake = an_extender({"filter": lambda _: {"NodeNames": ["b", "a", "b"]}})

    assert (await made(fake).filter(b"{}", ["a", "b"], no_nodes)).passed == ("b", "a")


async def test_whole_nodes_are_answered_by_whole_nodes() -> None:
    fake = an_extender(
        {"filter": lambda question: {"Nodes": {"items": question["Nodes"]["items"][1:]}}}, node_cache_capable=False
    )
    nodes = {name: b'{"metadata":{"name":"%b"}}' % name.encode() for name in ("a", "b")}

    answer = await made(fake).filter(b"{}", ["a", "b"], lambda names: [nodes[name] for name in names])

    assert answer.passed == ("b",)
    assert fake.asked[0][1]["NodeNames"] is None
