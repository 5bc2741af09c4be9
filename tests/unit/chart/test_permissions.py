"""The table from which the chart grants permissions: what is in it, and that file and page are up to date."""

import re
from typing import Any

import pytest

from plugins import SHIPPED
from tests.chart import load_documents, schedulers_own
from tests.chart.manifest import MANIFEST
from tests.chart.permissions import FILE, PAGE, REASONS, declared_by, file_text, needs, page_text


def granted(documents: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Resource, with its group before a slash unless it is the core group, and verb; of all roles."""
    roles = [each for each in documents if each["kind"] in ("ClusterRole", "Role")]
    return {
        (f"{group}/{resource}" if group else resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def explained_by_the_docs() -> set[tuple[str, str]]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {
        (resource, verb)
        for _, resources, verbs, *_ in rows
        for resource in re.findall("`([^`]+)`", resources)
        for verb in re.findall("`([^`]+)`", verbs)
    }


def test_the_charts_file_is_what_the_plugins_declare() -> None:
    assert FILE.read_text() == file_text(), "`make manifest` writes it"


def test_the_table_on_the_page_is_what_the_plugins_declare() -> None:
    page = PAGE.read_text()

    assert page == page_text(page), "`make manifest` writes it"


def test_each_verb_that_the_manifest_grants_has_its_reason_on_the_page() -> None:
    assert granted(schedulers_own(load_documents(MANIFEST.read_text()))) <= explained_by_the_docs()


@pytest.mark.parametrize(
    ("plugin", "verbs"),
    [
        ("NodeName", {}),
        ("DefaultPreemption", {("", "pods"): ("delete",), ("policy", "poddisruptionbudgets"): ("list", "watch")}),
        ("LoadAware", {("metrics.k8s.io", "nodes"): ("list",)}),
        ("NodeResourceTopologyMatch", {("topology.node.k8s.io", "noderesourcetopologies"): ("list", "watch")}),
    ],
)
def test_a_plugin_is_granted_what_it_declares_beyond_the_schedulers_own(
    plugin: str, verbs: dict[tuple[str, str], tuple[str, ...]]
) -> None:
    assert declared_by(plugin) == verbs


def test_verbs_on_a_resource_are_explained_together_only_for_the_same_plugins() -> None:
    found = [need for need in needs() if need.resource == ("", "persistentvolumes")]

    volumes = ("NodeVolumeLimits", "VolumeBinding", "VolumeZone")
    assert [(each.verbs, each.plugins) for each in found] == [
        (("list", "watch"), volumes),
        (("patch",), ("VolumeBinding",)),
        (("get",), ("VolumeBinding",)),
    ]


def test_a_verb_without_a_reason_is_an_error_and_so_is_a_reason_for_what_nobody_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.delitem(REASONS, (("", "nodes"), ("list", "watch")))
        with pytest.raises(LookupError, match="nodes"):
            needs()

    monkeypatch.setitem(REASONS, (("", "secrets"), ("get",)), "curiosity")
    with pytest.raises(LookupError, match="secrets"):
        needs()


def test_every_plugin_that_is_named_is_shipped() -> None:
    assert {plugin.partition("/")[0] for need in needs() for plugin in need.plugins} <= SHIPPED.keys()
