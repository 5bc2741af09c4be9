"""Extenders in a configuration: what is read, what is refused, and what that does to the profiles."""

from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.extenders import Extender
from scheduler.config.load import config_from_dict
from scheduler.config.notes import notes
from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError


def read(*extenders: Any, **fields: Any) -> Config:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return config_from_dict({**header, "extenders": list(extenders), **fields}, IN_TREE)


def problems(*extenders: Any, **fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(*extenders, **fields)
    return list(error.value.problems)


def test_an_extender_is_read_with_kube_schedulers_defaults() -> None:
    (extender,) = read({"urlPrefix": "http://x/y", "filterVerb": "filter"}).extenders

    assert extender == Extender(url_prefix="http://x/y", filter_verb="filter")
    assert extender.timeout == 5
    assert not any((extender.node_cache_capable, extender.ignorable, extender.enable_https))


def test_every_field_has_its_name() -> None:
    (extender,) = read(
        {
            "urlPrefix": "https://x",
            "filterVerb": "f",
            "preemptVerb": "p",
            "prioritizeVerb": "r",
            "weight": 3,
            "bindVerb": "b",
            "enableHTTPS": True,
            "tlsConfig": {
                "serverName": "s",
                "certFile": "c",
                "keyFile": "k",
                "caFile": "a",
                "certData": "YQ==",
                "keyData": "YQ==",
                "caData": "YQ==",
            },
            "httpTimeout": "1m",
            "nodeCacheCapable": True,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            "ignorable": True,
        }
    ).extenders

    assert (extender.timeout, extender.weight, extender.ignorable) == (60, 3, True)
    assert extender.tls_config is not None
    assert extender.tls_config.ca_data == "YQ=="
    assert "YQ==" not in repr(extender.tls_config).replace("ca_data='YQ=='", ""), "keys are in no log"
    assert extender.managed_resources[0].ignored_by_scheduler


@pytest.mark.parametrize(
    ("extender", "problem"),
    [
        ({"weigth": 1}, "weigth: unknown field; did you mean 'weight'?"),
        ({"urlPrefix": 7}, "urlPrefix: expected string, got 7"),
        ({"urlPrefix": "x:80"}, '"x:80": must be the URL of a server, http://… or https://…'),
        ({"urlPrefix": "ftp://x"}, '"ftp://x": must be the URL of a server, http://… or https://…'),
        ({"urlPrefix": "http://"}, '"http://": must be the URL of a server, http://… or https://…'),
        ({"urlPrefix": "http://x:port"}, '"http://x:port": must be the URL of a server, http://… or https://…'),
        ({"urlPrefix": "http://x\ny"}, '"http://x\\ny": must be the URL of a server, http://… or https://…'),
        ({"prioritizeVerb": "p"}, "weight: Invalid value: 0: must have a positive weight applied to it"),
        ({"prioritizeVerb": "p", "weight": -1}, "weight: Invalid value: -1: must have a positive weight applied to it"),
        ({"weight": "5"}, "weight: expected int, got '5'"),
        ({"weight": 2**63}, "weight: 9223372036854775808 does not fit into 64 bits"),
        ({"httpTimeout": "5"}, "httpTimeout: not a duration: '5' (write for example '15s' or '1m30s')"),
        ({"httpTimeout": "-5s"}, 'httpTimeout: Invalid value: "-5s": must not be negative'),
        ({"enableHTTPS": "yes"}, "enableHTTPS: expected bool, got 'yes'"),
        ({"tlsConfig": {"caData": "*"}}, "tlsConfig.caData: not base64: "),
        (
            {"tlsConfig": {"insecure": True, "caFile": "x"}},
            "tlsConfig: specifying a root certificates file with the insecure flag is not allowed",
        ),
        ({"tlsConfig": []}, "tlsConfig: expected a mapping, got a list"),
        ({"managedResources": [{}]}, "managedResources[0].name: Required value"),
        ({"managedResources": [{"name": "cpu"}]}, '"cpu": is an invalid extended resource name'),
        ({"managedResources": {"name": "x"}}, "managedResources: expected a list"),
        ("http://x", "expected a mapping, got 'http://x'"),
        (None, "expected a mapping, got null"),
    ],
)
def test_each_mistake_is_one_line_with_its_place(extender: Any, problem: str) -> None:
    (line,) = problems(extender)

    assert line.startswith("extenders[0]")
    assert problem in line


def test_all_mistakes_are_told_at_once() -> None:
    managed = {"managedResources": [{"name": "example.com/a"}, {"name": "example.com/a"}]}

    found = problems({"urlPrefix": "a"}, managed, {"weigth": 1}, parallelism=0)

    assert sorted(line.partition(":")[0] for line in found) == [
        "extenders[0].urlPrefix",
        "extenders[1].managedResources[1].name",
        "extenders[2].weigth",
        "parallelism",
    ]


def test_two_cannot_bind() -> None:
    assert problems({"bindVerb": "a"}, {"bindVerb": "b"}) == [
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'
    ]


def test_a_list_is_a_list() -> None:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with pytest.raises(ConfigError, match="extenders: expected a list"):
        config_from_dict({**header, "extenders": {"urlPrefix": "http://x"}}, IN_TREE)


def test_an_extender_without_an_address_is_accepted_with_a_warning_as_it_is_no_error_there() -> None:
    config = read({"filterVerb": "f"})

    assert "extenders[0].urlPrefix is empty: every call of this extender will fail" in notes(config)


def test_resources_that_extenders_count_are_ignored_by_every_profile() -> None:
    gpu = {"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/b"}]}
    arguments = {"ignoredResources": ["example.com/old"], "ignoredResourceGroups": ["group.io"]}
    profiles = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}]},
    ]

    config = read(gpu, profiles=profiles)

    assert [profile.plugin_config["NodeResourcesFit"] for profile in config.profiles] == [
        {"ignoredResources": ["example.com/gpu"]},
        {"ignoredResources": ["example.com/gpu"], "ignoredResourceGroups": ["group.io"]},
    ]


def test_without_any_the_profiles_stay_as_they_are() -> None:
    assert all(not profile.plugin_config for profile in read({"managedResources": [{"name": "a.b/c"}]}).profiles)


@pytest.mark.parametrize("room", [0, -1, 1001])
def test_room_for_attempts_has_limits(room: int) -> None:
    assert problems(loadmaster={"podsAtExtenders": room}) == [
        f"loadmaster.podsAtExtenders: Invalid value: {room}: must be from 1 to 1000"
    ]
