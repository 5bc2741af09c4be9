from pathlib import Path

import pytest
import yaml

from tests.controlplane import flags
from tests.controlplane.credentials import Credentials
from tests.controlplane.flags import Settings

BINARY = Path("/bin/it")
CREDENTIALS = Credentials(Path("/keys"), {})


def apiserver(settings: Settings) -> list[str]:
    return flags.kube_apiserver(BINARY, CREDENTIALS, etcd_port=1, settings=settings, port=2)


def disabled_admission(settings: Settings) -> set[str]:
    (flag,) = (flag for flag in apiserver(settings) if flag.startswith("--disable-admission-plugins="))
    return set(flag.partition("=")[2].split(",")) - {""}


def test_without_the_controller_manager_no_admission_plugin_waits_for_it() -> None:
    assert "ServiceAccount" in disabled_admission(Settings())
    assert disabled_admission(Settings(controller_manager=True)) == set()


def test_more_admission_plugins_can_be_turned_off() -> None:
    assert disabled_admission(Settings(controller_manager=True, disable_admission=("Priority",))) == {"Priority"}
    assert {"Priority", "ServiceAccount"} <= disabled_admission(Settings(disable_admission=("Priority",)))


def test_more_flags_come_last_so_that_they_win() -> None:
    assert apiserver(Settings(apiserver_flags=("--v=4",)))[-1] == "--v=4"


def test_half_of_the_requests_in_flight_may_be_writes() -> None:
    argv = apiserver(Settings(max_inflight=10))

    assert "--max-requests-inflight=5" in argv
    assert "--max-mutating-requests-inflight=5" in argv


def test_there_must_be_room_for_a_request() -> None:
    with pytest.raises(ValueError, match="max_inflight"):
        Settings(max_inflight=1)


def test_a_scheduler_configuration_gets_its_connection_and_keeps_the_rest() -> None:
    given = "kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: a}]\nclientConnection: {contentType: x}\n"

    config = yaml.safe_load(flags.scheduler_config(given, Path("/k"), qps=100.0, burst=200))

    assert config["profiles"] == [{"schedulerName": "a"}]
    assert config["clientConnection"] == {"contentType": "x", "kubeconfig": "/k", "qps": 100.0, "burst": 200}
    assert config["leaderElection"] == {"leaderElect": False}


def test_the_default_scheduler_configuration_is_a_whole_one() -> None:
    config = yaml.safe_load(flags.scheduler_config("", Path("/k"), qps=1.0, burst=1))

    assert (config["apiVersion"], config["kind"]) == (
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
    )


def test_kwok_has_stages_for_nodes_and_pods() -> None:
    stages = list(yaml.safe_load_all(flags.KWOK_STAGES.read_text()))

    assert {stage["kind"] for stage in stages} == {"Stage"}
    assert {stage["spec"]["resourceRef"]["kind"] for stage in stages} == {"Node", "Pod"}
