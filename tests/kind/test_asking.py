"""What people ask a scheduler that runs on a cluster: `kubectl loadmaster explain`, and the page in a browser."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import chromium
from tests.browser.visitor import visiting
from tests.controlplane import Client, wait_until
from tests.kind.cluster import NODES, ZONES, KindCluster
from tests.kind.plugin import command, environment, kubectl_loadmaster
from tests.kind.scheduler import Scheduler
from tests.kind.workloads import SOON, a_pod, apply, why_pending


@pytest.fixture
def pending(cluster: KindCluster, api: Client, loadmaster: Scheduler, namespace: str) -> str:
    """A pod that fits nowhere, as `explain` is asked for it."""
    apply(cluster, namespace, a_pod("huge", cpu="900"))
    wait_until(lambda: why_pending(api, namespace, "huge"), SOON, "the scheduler's verdict")
    return f"{namespace}/huge"


@contextmanager
def page_of(cluster: KindCluster) -> Iterator[str]:
    """`kubectl loadmaster page`, and the address that it prints."""
    page = command(cluster, "page")
    with subprocess.Popen(page, stdout=subprocess.PIPE, text=True, env=environment(cluster)) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def test_kubectl_explains_why_a_pod_is_pending(cluster: KindCluster, pending: str) -> None:
    told = kubectl_loadmaster(cluster, "explain", pending)

    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"{pending}  unschedulable\n")
    assert f"none of {len(NODES)} nodes takes it" in told.stdout
    assert "WHAT WOULD HELP" in told.stdout
    assert "attempt 1: unschedulable" in told.stdout, "the running scheduler was asked, which has the history"


def test_the_page_shows_the_nodes_and_the_pod_that_waits(cluster: KindCluster, pending: str) -> None:
    with chromium() as browser, page_of(cluster) as url, visiting(browser, url) as visitor:
        visitor.ready()

        assert visitor.text("#map-count") == f"{len(NODES)} nodes in {len(ZONES)} zones"
        visitor.page.click(f"#queue >> text={pending}", timeout=20_000)
        dialog = visitor.page.get_by_role("dialog", name=pending)
        expect(dialog).to_contain_text("What would help, each tried out", timeout=20_000)
        assert visitor.complaints == []
