"""The plugin on the page of `explain` works, and what it says is told."""

import re
from pathlib import Path
from typing import Any

import msgspec

from scheduler.explain.explanation import explain
from scheduler.testing import a_node, a_pod
from tests.fakes import run
from tests.unit.cycle.fakes import an_engine

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"


def the_plugin() -> Any:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), found)
    return found["HostNetworkGuard"]


def test_the_plugin_of_the_page_tells_its_fact_and_what_would_help() -> None:
    scheduler = an_engine(the_plugin())
    scheduler.see(a_node("a", labels={"tenants": "shop"}))
    pod = a_pod("agent")
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, host_network=True))
    document = msgspec.to_builtins(run(explain(scheduler.engine, pod)))

    assert [[each["fact"] for each in group["obstacles"]] for group in document["groups"]] == [
        ["the node has tenants: shop"]
    ]
    assert [each["text"] for each in document["suggestions"]] == ["use a network of its own"]
