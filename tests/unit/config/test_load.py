from pathlib import Path
from typing import Any

import pytest

from scheduler.config.load import config_from_dict, load_config
from scheduler.config.notes import notes
from scheduler.config.types import Config, LeaderElection
from scheduler.framework.duration import Duration
from scheduler.framework.errors import ConfigError
from scheduler.runtime.profile_spec import PluginRef
from tests.unit.config.fakes import REGISTRY, a_config, a_profile

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_MAPPING = "expected a mapping with apiVersion kubescheduler.config.k8s.io/v1 and kind KubeSchedulerConfiguration"


def problems_of(values: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_from_dict(values, REGISTRY)
    return list(caught.value.problems)


def problems_of_file(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(str(path), REGISTRY)
    return [problem.replace(str(path), "FILE") for problem in caught.value.problems]


def test_without_a_file_there_is_one_profile_with_the_default_plugins() -> None:
    config = load_config(None, REGISTRY)

    (profile,) = config.profiles
    assert profile.scheduler_name == "loadmaster"
    assert profile.plugins.multi_point.enabled[4] == PluginRef("TaintToleration", 3)
    assert config == Config(profiles=config.profiles)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"parallelism": None}, {"parallelism": 16}, id="null is the default"),
        pytest.param({"podMaxBackoffSeconds": 20}, {"pod_max_backoff_seconds": 20}, id="a number"),
        pytest.param({"percentageOfNodesToScore": 100}, {"percentage_of_nodes_to_score": 100}, id="a percentage"),
        pytest.param({"leaderElection": None}, {"leader_election": LeaderElection()}, id="a section that is null"),
        pytest.param(
            {"leaderElection": {"leaseDuration": "0s", "resourceName": "", "retryPeriod": "3s", "leaderElect": False}},
            {"leader_election": LeaderElection(leader_elect=False, retry_period=3)},  # type: ignore[arg-type]
            id="zeros are the default, false is not",
        ),
        pytest.param({"profiles": []}, {"parallelism": 16}, id="no profile is the default one"),
        pytest.param({"extenders": []}, {"parallelism": 16}, id="no extenders"),
    ],
)
def test_settings_are_read(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    config = config_from_dict(a_config(**fields), REGISTRY)

    assert {name: getattr(config, name) for name in expected} == expected


def test_arguments_for_what_is_no_plugin_have_no_effect_and_that_is_said() -> None:
    config = config_from_dict(a_profile(pluginConfig=[{"name": "NodeNam"}]), REGISTRY)

    hint = "there is no such plugin; did you mean 'NodeName'?"
    assert notes(config, REGISTRY) == [f'profiles[0].pluginConfig has no effect for "NodeNam": {hint}']


def test_lengths_of_time_are_not_checked_without_leader_election() -> None:
    config = config_from_dict(a_config(leaderElection={"leaderElect": False, "leaseDuration": "1s"}), REGISTRY)

    assert str(config.leader_election.lease_duration) == "1s"


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        (None, [NO_MAPPING]),
        (
            {"kind": "Pod"},
            [
                "apiVersion: expected kubescheduler.config.k8s.io/v1, got none",
                "kind: expected KubeSchedulerConfiguration, got 'Pod'",
            ],
        ),
        *(
            (
                {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration"},
                [
                    f"apiVersion: kubescheduler.config.k8s.io/{version} was removed from kube-scheduler; "
                    "use kubescheduler.config.k8s.io/v1"
                ],
            )
            for version in ("v1beta1", "v1beta2", "v1beta3")
        ),
    ],
)
def test_what_is_no_configuration_is_reported_before_its_fields(values: object, problems: list[str]) -> None:
    assert problems_of(values) == problems


def test_of_several_documents_the_first_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"{HEADER}parallelism: 3\n---\n{HEADER}parallelism: 4\n")

    config = load_config(f"{path}", REGISTRY)

    assert config.parallelism == 3
    assert caplog.messages == ["A second document of the configuration has no effect"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "FILE: the file is empty", id="empty"),
        pytest.param(b"# nothing\n", "FILE: the file is empty", id="comments only"),
        pytest.param(b"\x7fELF\x80", "FILE: not a text: byte 4 is not UTF-8", id="binary"),
    ],
)
def test_a_file_that_is_wrong_is_one_line_with_its_name(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)

    assert problems_of_file(path) == [problem]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert problems_of_file(tmp_path / "missing") == ["FILE: cannot be read: No such file or directory"]
    assert problems_of_file(tmp_path) == ["FILE: cannot be read: Is a directory"]


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{\n\t"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 3}'
    )

    assert load_config(str(path), REGISTRY).parallelism == 3


def test_a_flag_takes_the_place_of_what_the_file_says_in_either_spelling() -> None:
    section = {"leaseDuration": "5s", "resource_name": "mine", "retryPeriod": "3s"}
    flags = {"leaseDuration": Duration(20), "resourceName": "ours", "leaderElect": False}

    election = config_from_dict(a_config(leaderElection=section), REGISTRY, flags).leader_election

    assert election == LeaderElection(False, Duration(20), retry_period=Duration(3), resource_name="ours")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param(
            {"leaseDuration": Duration(0)},
            'leaderElection.leaseDuration: Invalid value: "0s": must be greater than zero',
            id="no time",
        ),
        pytest.param({"resourceName": ""}, "leaderElection.resourceName: Required value", id="no name"),
        pytest.param({"resourceNamespace": ""}, "leaderElection.resourceNamespace: Required value", id="no namespace"),
        pytest.param(
            {"retryPeriod": Duration(9)},
            'leaderElection.renewDeadline: Invalid value: "10s": must be greater than retryPeriod*JitterFactor',
            id="a period too long",
        ),
    ],
)
def test_a_zero_as_a_flag_is_a_zero(flags: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config_from_dict(a_config(), REGISTRY, flags)

    assert raised.value.problems[0] == problem


def test_leader_election_is_not_noted_as_without_effect() -> None:
    assert notes(config_from_dict({**a_profile(), "leaderElection": {"resourceName": "mine"}}, REGISTRY)) == []


def test_a_setting_without_effect_is_noted() -> None:
    config = config_from_dict({**a_profile(), "parallelism": 8, "clientConnection": {"contentType": "x"}}, REGISTRY)

    assert notes(config) == [
        "parallelism has no effect: one thread looks at all nodes at once",
        "clientConnection.contentType has no effect: requests are JSON",
    ]


def test_the_default_configuration_needs_no_note() -> None:
    assert notes(load_config(None, REGISTRY)) == []
