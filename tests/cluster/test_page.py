"""`loadmaster page` of a scheduler behind the real API server, by a user who has the Role and nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from playwright.sync_api import expect

from tests.browser.chromium import chromium
from tests.browser.visitor import visiting
from tests.chart.helm import Helm
from tests.cluster.proxied import asker, proxied
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod

NODES: Final = 20
ZONE: Final = "topology.kubernetes.io/zone"
SECONDS: Final = 20.0


@pytest.fixture(scope="module")
def admin(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        own.create_namespace("shop")
        for number in range(NODES):
            labels = {ZONE: f"zone-{number % 2}", "kubernetes.io/hostname": f"node-{number:02}"}
            client.create(a_node(f"node-{number:02}", labels=labels))
        yield client


@pytest.fixture(scope="module")
def loadmaster(own: ControlPlane, admin: Client, address: str) -> Iterator[Component]:
    with proxied(own, admin, address, "--page") as process:
        yield process


@pytest.fixture(scope="module")
def user(own: ControlPlane) -> Path:
    return asker(own)


@contextmanager
def serving(kubeconfig: Path) -> Iterator[str]:
    """`loadmaster page`, and the address that it prints."""
    command = [sys.executable, "-m", "scheduler", "page", f"--kubeconfig={kubeconfig}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def refused(kubeconfig: Path, *options: str) -> str:
    """What `loadmaster page` says when it ends at once with exit code 2."""
    command = [sys.executable, "-m", "scheduler", "page", f"--kubeconfig={kubeconfig}", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


def allow_the_page(own: ControlPlane, home: Path) -> None:
    """Give the account what the chart gives it with page.enabled=true."""
    rendered = yaml.safe_load_all(Helm(home).render({"page": {"enabled": True}}))
    (role,) = (
        each for each in rendered if each and each["kind"] == "ClusterRole" and "explain" in str(each["metadata"])
    )
    own.kubectl("apply", "-f", "-", stdin=json.dumps(role))


def test_a_user_sees_the_cluster_and_decisions_through_the_api_server(
    own: ControlPlane, admin: Client, loadmaster: Component, user: Path, tmp_path: Path
) -> None:
    assert "forbidden: User" in refused(user)
    allow_the_page(own, tmp_path)
    with serving(user) as url:
        assert _status(url.replace("token=", "token=x")) == 403
        with chromium() as browser, visiting(browser, url) as visitor:
            visitor.ready()
            assert visitor.text("#map-count") == f"{NODES} nodes in 2 zones"
            assert "token" not in visitor.page.url
            hostile: Any = a_pod("web", cpu="100m", memory="64Mi", labels={"app": "x"})
            hostile["metadata"]["annotations"] = {"note": "<img src=x onerror=window.pwned=1>"}
            admin.create(hostile, "shop")
            admin.create(a_pod("huge", cpu="900", memory="1Mi"), "shop")
            bound = visitor.page.locator("#decisions li[data-result=bound]", has_text="shop/web")
            expect(bound).to_contain_text("→ node-", timeout=10_000)
            visitor.page.click("#queue >> text=shop/huge", timeout=10_000)
            dialog = visitor.page.get_by_role("dialog", name="shop/huge")
            expect(dialog).to_contain_text("What would help, each tried out", timeout=10_000)
            visitor.press("Escape")
            visitor.page.hover("#map", position={"x": 20, "y": 40})
            expect(visitor.page.locator("#map-tip strong")).to_have_text("node-00")
            assert visitor.page.evaluate("window.pwned === undefined")
            assert visitor.complaints == []


def _status(url: str) -> int:
    try:
        with urlopen(Request(url), timeout=SECONDS) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code
