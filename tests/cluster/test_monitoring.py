"""What is shipped for Prometheus and Grafana, with a real Prometheus, scraping two replicas that work.

The faults that queries ask for are there: a plugin that fails, an extender, preemption, a replica that is killed.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scheduler.assembly.share_gauges import ShareGauges
from scheduler.process.metrics import Metrics
from tests.chart import Helm, load_documents
from tests.chart.promql import Selector, groupings, selectors
from tests.chart.promtool import DASHBOARD, RULES, check
from tests.cluster.extender_server import ExtenderServer
from tests.cluster.faulty_plugins_scheduler import END
from tests.cluster.https import http_get
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, metric, metrics_token, node_of, start
from tests.cluster.prometheus import MISSING, Prometheus, a_prometheus, as_documented, is_there
from tests.cluster.replicas import Timing
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, condition, wait_until
from tests.unit.cycle.fakes import an_engine

pytestmark = pytest.mark.skipif(not is_there(), reason=MISSING)

TOKEN = Path(__file__).parents[2] / "docs" / "examples" / "metrics-token.yaml"
PROGRAM = Path(__file__).with_name("faulty_plugins_scheduler.py")
GPU = "extender.example.com/gpu"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: loadmaster
  plugins: {{multiPoint: {{enabled: [{{name: Misbehaving}}]}}}}
loadmaster:
  pluginLimits: [{{name: Misbehaving, action: SwitchOff, faults: 3, within: 1m, pause: 10m}}]
extenders:
- urlPrefix: {url}/names
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 1
  nodeCacheCapable: true
  managedResources: [{{name: {gpu}}}]
"""
SHORTER: Final = 5
"""Leases last a fifth of what is shipped here, and alerts wait a fifth of their time."""
SO_LONG: Final = re.compile(r"\bfor: (\d+)m$", re.MULTILINE)
FIRING: Final = 'max_over_time(ALERTS{alertstate="firing"}[10m])'
HINTS: Final = "scheduler_queueing_hint_execution_duration_seconds_count"
TIMED: Final = (HINTS, "scheduler_plugin_execution_duration_seconds_count")
OF_TARGETS: Final = {"job", "namespace", "instance", "pod", "metrics_path"}
"""Labels that Prometheus adds."""
OF_PROMETHEUS: Final = {"up", "ALERTS"}
"""Series that Prometheus makes."""

NOT_SEEN_HERE: Final = {
    'rest_client_requests_total{job="loadmaster",code="401"}',
    'loadmaster_api_calls_total{job="loadmaster",verb="GET",code="403"}',
    'loadmaster_api_calls_total{job="loadmaster",code=~"5..|timeout|connection"}',
    'loadmaster_api_calls_total{job="loadmaster",code="429"}',
    'loadmaster_api_calls_total{job="loadmaster",resource="pods/binding",code!~"2..|404|409"}',
    'loadmaster_bind_outcomes_settled_total{job="loadmaster"}',
    'loadmaster_cache_corrections_total{job="loadmaster"}',
    'loadmaster_certificate_reloads_total{job="loadmaster",result="error"}',
    'loadmaster_events_dropped_total{job="loadmaster"}',
    'loadmaster_extender_calls_total{job="loadmaster",result!~"ok|cancelled"}',
    'loadmaster_kubelet_rejections_total{job="loadmaster"}',
    'loadmaster_plugin_data_faults_total{job="loadmaster"}',
    'loadmaster_plugin_faults_total{job="loadmaster",kind="late"}',
    'loadmaster_resync_repairs_total{job="loadmaster"}',
    'loadmaster_share_guaranteed{job="loadmaster"}',
    'loadmaster_share_pending{job="loadmaster"}',
    'loadmaster_share_used{job="loadmaster"}',
    'loadmaster_task_failures_total{job="loadmaster"}',
    'loadmaster_watch_errors_total{job="loadmaster",reason="stalled"}',
    'loadmaster_watch_errors_total{job="loadmaster",reason=~"handler|listener"}',
    'scheduler_preemption_goroutines_execution_total{job="loadmaster",result="error"}',
}
"""Series that only trouble of others, a bug, or shares bring about. That these have the labels is tested."""


@pytest.fixture(scope="module")
def replicas(own: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Component]]:
    """Two, of which the first leads."""
    directory = tmp_path_factory.mktemp("monitoring")
    config = directory / "config.yaml"
    account = own.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    reviews = (f"--authentication-kubeconfig={account}", f"--authorization-kubeconfig={account}")
    options = (f"--config={config}", *reviews, *Timing(3.0, 2.0, 0.5).flags)
    with ExtenderServer() as server:
        config.write_text(CONFIG.format(url=server.url, gpu=GPU))
        env = {END: str(directory / "end")}
        with start(own, *options, name="first", program=(str(PROGRAM),), env=env) as first:
            wait_until(lambda: 'status{name="loadmaster"} 1.0' in http_get(first.port, "/metrics")[1], 30, "it leads")
            with start(own, *options, name="second", program=(str(PROGRAM),), env=env) as second:
                yield [first, second]


@pytest.fixture(scope="module")
def prometheus(
    own: ControlPlane, replicas: list[Component], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Scrapes both, as docs/operations/port.md says, while they work."""
    directory = tmp_path_factory.mktemp("prometheus")
    targets = [f"127.0.0.1:{each.port}" for each in replicas]
    jobs = as_documented(directory, targets, metrics_token(own))
    rules = directory / "rules.yaml"
    rules.write_text(SO_LONG.sub(lambda found: f"for: {int(found[1]) * 60 // SHORTER}s", RULES.read_text()))
    with own.client() as api, a_prometheus(own, jobs, [rules]) as prometheus:
        probe(replicas)
        wait_until(lambda: len(prometheus.query('up{job="loadmaster"} == 1')) == 4, 30, "all pages are scraped")
        work(api)
        time_more(api, replicas[0].port)
        for family in TIMED:
            wait_until(partial(prometheus.query, family), 10, "they are scraped")
        time_more(api, replicas[0].port)  # only what grows has a rate
        probe(replicas)
        yield prometheus


def probe(replicas: list[Component]) -> None:
    """What kubelets do."""
    for each in replicas:
        for path in ("/livez", "/readyz"):
            assert http_get(each.port, path)[0] == 200


def work(api: Client) -> None:
    """Pods that fit, two that do not, one on hold, one that preempts, two for an extender, three for a bad plugin."""
    high: dict[str, Any] = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    api.create({**high, "value": 1000})
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "work"}})
    api.create(a_node("large", cpu="64", resources={GPU: "8"}))
    api.create(a_node("small", cpu="1", labels={"pool": "small"}))

    def create(name: str, cpu: str = "10m", **wishes: Any) -> None:
        api.create(a_pod(name, cpu=cpu, memory="1Mi", **wishes), "work")

    def is_bound(name: str) -> bool:
        return bool(node_of(api.get("Pod", name, "work")))

    def is_refused(name: str) -> bool:
        return condition(api.get("Pod", name, "work"), "PodScheduled") is not None

    for number in range(60):  # a tenth is timed
        create(f"web-{number}")
    small = {"nodeSelector": {"pool": "small"}}
    create("first", "600m", **small)
    wait_until(lambda: is_bound("first"), 30, "the first is bound")
    create("urgent", "600m", priorityClassName="high", **small)
    create("large", "640")
    create("picky", nodeSelector={"pool": "none"})
    create("gated", schedulingGates=[{"name": "example.com/wait"}])
    create("gpu-1", resources={GPU: "1"})
    create("gpu-2", resources={GPU: "1"})
    for number in range(3):
        create(f"bad-{number}", labels={"does": "exit"})
    for name in ("large", "picky"):
        wait_until(partial(is_refused, name), 20, f"{name} is refused")
    for name in ("urgent", "gpu-1", "gpu-2", "web-59"):
        wait_until(partial(is_bound, name), 40, f"{name} is bound")


def time_more(api: Client, port: int) -> None:
    """Place pods and change a node until another plugin's call and another hint are timed: a tenth of them is.

    No hint is asked while the pod is in backoff.
    """
    before, turns = {family: metric(port, family) for family in TIMED}, count()

    def are_timed() -> bool:
        turn = f"{before[HINTS]:g}-{next(turns)}"
        api.patch("Node", "small", {"metadata": {"labels": {"turn": turn}}})
        api.create(a_pod(f"turn-{turn}", cpu="10m", memory="1Mi"), "work")
        return all(metric(port, family) > before[family] for family in TIMED)

    wait_until(are_timed, 30, "a plugin's call and a hint are timed")


def queries() -> dict[str, str]:
    """Panel and letter → query, as Grafana would ask it for the job that is scraped here."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    found = {f"{panel['title']} {each['refId']}": each["expr"] for panel in panels for each in panel.get("targets", ())}
    chosen = {"$job": "loadmaster", "$namespace": NAMESPACE, "$__rate_interval": "5m"}
    for name in found:
        for variable, value in chosen.items():
            found[name] = found[name].replace(variable, value)
        assert "$" not in found[name], name
    return found


def expressions() -> dict[str, str]:
    """Alert → its expression."""
    (document,) = load_documents(RULES.read_text())
    return {rule["alert"]: rule["expr"] for group in document["groups"] for rule in group["rules"]}


def declared() -> dict[str, set[str]]:
    """Metric → its labels, for those that have no series before they have counted something."""
    metrics = Metrics()
    metrics.add_pod_groups()
    metrics.watch_reserved_nodes(int)
    ShareGauges(an_engine().engine, metrics)
    found = {}
    for collector in metrics.registry._collector_to_names:
        for name in metrics.registry._collector_to_names[collector]:
            found[name] = set(getattr(collector, "_labelnames", ()))
    found |= {each.name: set(each._labelnames) for each in metrics.registry.collect() if hasattr(each, "_labelnames")}
    return found


def test_every_query_of_the_dashboard_finds_something(prometheus: Prometheus) -> None:
    missing = queries()

    def found() -> bool:
        for name, query in tuple(missing.items()):
            if prometheus.values(query):
                del missing[name]
        return not missing

    with suppress(TimeoutError):
        wait_until(found, 30, interval=2)
    assert missing == {}


def test_prometheus_evaluates_all_rules_without_an_error(prometheus: Prometheus) -> None:
    wait_until(lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), 30, "all rules are evaluated")

    rules = prometheus.rules()
    assert {rule["name"] for rule in rules} == expressions().keys()
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []


@pytest.mark.parametrize("source", [queries, expressions], ids=["dashboard", "alerts"])
def test_metrics_and_labels_that_are_asked_for_exist(prometheus: Prometheus, source: Any) -> None:
    known = declared()
    problems = []
    for name, expression in source().items():
        asked = list(selectors(expression))
        labels: set[str] = set(OF_TARGETS)
        for each in asked:
            has = labels_of(prometheus, each, known)
            problems += [f"{name}: {each.metric} has no label {label}" for label in {m[0] for m in each.matchers} - has]
            labels |= has
        problems += [f"{name}: groups by {label}" for label in groupings(expression) - labels]
        assert asked, name

    assert problems == []


def labels_of(prometheus: Prometheus, selector: Selector, declared: dict[str, set[str]]) -> set[str]:
    """The labels of a metric, in the series that there are, or as it is declared. Raises AssertionError without it."""
    series = prometheus.query(selector.metric)
    if not series:
        family = selector.metric
        assert family in OF_PROMETHEUS or family in declared, f"there is no metric {family}"
        return declared.get(family, {"alertname", "alertstate"}) | OF_TARGETS | {"le"}
    return {label for each in series for label in each["metric"]}


def test_alerts_select_series_that_there_are(prometheus: Prometheus) -> None:
    asked = {each.text for expression in expressions().values() for each in selectors(expression)}
    missing = {each for each in asked if not prometheus.query(each)}

    assert missing == NOT_SEEN_HERE


def test_only_what_is_wrong_here_fires_also_when_a_replica_takes_over(
    prometheus: Prometheus, replicas: list[Component]
) -> None:
    first, second = replicas
    leads = f'leader_election_master_status{{instance="127.0.0.1:{second.port}"}} == 1'

    wait_until(lambda: prometheus.query(FIRING), 90, "the plugin that is switched off is told of", interval=1)
    first.stop()
    wait_until(lambda: prometheus.query(leads), 30, "the other one leads")

    assert {each["metric"]["alertname"] for each in prometheus.query(FIRING)} == {"LoadmasterPluginPaused"}


def test_a_service_monitor_asks_for_what_the_documented_scrape_does(helm: Helm, tmp_path: Path) -> None:
    (monitor,) = rendered(helm, "ServiceMonitor", serviceMonitor={"enabled": True, "labels": {"release": "prometheus"}})
    (service,) = of_kind(rendered_all(helm), "Service")
    documented = as_documented(tmp_path, ["127.0.0.1:1"], "x")

    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": [service["metadata"]["namespace"]]}
    for endpoint, job in zip(monitor["spec"]["endpoints"], documented, strict=True):
        assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
        assert endpoint["path"] == job.get("metrics_path", "/metrics")
        assert endpoint["scheme"] == job["scheme"]
        assert endpoint["tlsConfig"]["insecureSkipVerify"] == job["tls_config"]["insecure_skip_verify"]
        assert [each["targetLabel"] for each in endpoint["relabelings"]] == ["metrics_path"]


def test_a_service_monitor_names_a_secret_instead_of_a_file(helm: Helm) -> None:
    secret = next(each for each in load_documents(TOKEN.read_text()) if each["kind"] == "Secret")
    authorization = {"credentials": {"name": secret["metadata"]["name"], "key": "token"}}
    action = [{"action": "labeldrop", "regex": "pod"}]
    wishes = {"authorization": authorization, "scrapeTimeout": "20s"}
    (monitor,) = rendered(
        helm,
        "ServiceMonitor",
        serviceMonitor={"enabled": True, **wishes, "relabelings": action, "metricRelabelings": action},
    )

    for endpoint in monitor["spec"]["endpoints"]:
        assert wishes.items() <= endpoint.items()
        assert "bearerTokenFile" not in endpoint
        assert [each.get("action", "") for each in endpoint["relabelings"]] == ["", "labeldrop"]
        assert endpoint["metricRelabelings"] == action


def test_single_alerts_are_left_out(helm: Helm) -> None:
    off = ["LoadmasterRestarting", "LoadmasterShareBelowGuarantee"]
    (rule,) = rendered(helm, "PrometheusRule", rules={"enabled": True, "disabled": off})
    alerts = [each["alert"] for group in rule["spec"]["groups"] for each in group["rules"]]

    assert sorted([*alerts, *off]) == sorted(re.findall(r"- alert: (\w+)", RULES.read_text()))
    assert all(group["rules"] for group in rule["spec"]["groups"])


def test_the_alerts_of_a_release_are_about_its_own_series(helm: Helm, tmp_path: Path) -> None:
    runbook = "https://wiki.example.com/runbook"
    (rule,) = rendered(helm, "PrometheusRule", rules={"enabled": True, "runbook": runbook})
    (other,) = rendered(helm, "PrometheusRule", rules={"enabled": True, "job": "my-job"})

    text, others = json.dumps(rule["spec"]), json.dumps(other["spec"])
    assert 'job=\\"loadmaster\\"' not in text + others
    assert text.count('job=\\"lm\\", namespace=\\"placing\\"') == RULES.read_text().count('job="loadmaster"')
    assert others.count('job=\\"my-job\\"') == RULES.read_text().count('job="loadmaster"')
    for each in (rule, other):
        (tmp_path / "rules.yaml").write_text(yaml.safe_dump(each["spec"]))
        assert "SUCCESS" in check(tmp_path / "rules.yaml")
    links = [each["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for each in group["rules"]]
    assert links[0] == f"{runbook}#loadmasterdown"
    assert all(link.startswith(f"{runbook}#loadmaster") for link in links)


def test_grafana_finds_the_dashboard_by_its_label(helm: Helm, own: ControlPlane) -> None:
    folder = {"grafana_folder": "Kubernetes"}
    documents = rendered_all(helm, dashboard={"enabled": True, "namespace": "default", "annotations": folder})
    (found,) = [each for each in of_kind(documents, "ConfigMap") if each["metadata"]["name"] == "lm-dashboard"]

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert (found["metadata"]["namespace"], found["metadata"]["annotations"]) == ("default", folder)
    assert json.loads(found["data"]["loadmaster.json"]) == json.loads(DASHBOARD.read_text())
    own.kubectl("apply", "-f", "-", "--dry-run=server", "--validate=strict", stdin=json.dumps(found))


@pytest.fixture(scope="module")
def helm(own: ControlPlane) -> Helm:
    return Helm(own.directory / "helm", own.kubeconfig())


def rendered_all(helm: Helm, **monitoring: Any) -> list[dict[str, Any]]:
    return load_documents(helm.render({"monitoring": monitoring}, release="lm", namespace="placing"))


def of_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in documents if each["kind"] == kind]


def rendered(helm: Helm, kind: str, **monitoring: Any) -> list[dict[str, Any]]:
    return of_kind(rendered_all(helm, **monitoring), kind)
