"""`loadmaster run`: kube-scheduler's flags, their defaults and spellings."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from plugins import IN_TREE
from scheduler.__main__ import WRONG_INPUT
from scheduler.commands.run import add_arguments, run_options
from scheduler.config.load import load_config
from scheduler.config.options import RunOptions, ServingOptions
from scheduler.framework.duration import Duration
from scheduler.framework.errors import ConfigError
from tests.unit.config.faulty import HEADER

pytestmark = pytest.mark.programs


def run(*arguments: str) -> tuple[int, str]:
    """What a process of its own ends with, and what it says: it sets up logging and signals."""
    command = [sys.executable, "-m", "scheduler", "run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def options_of(line: str) -> RunOptions:
    """What is read of these flags."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run_options(parser.parse_args(line.split(), argparse.Namespace(plugins={})))


def test_flags_that_were_not_given_change_nothing() -> None:
    options = options_of("")

    assert options.deprecated == options.leader_election == {}
    assert options.feature_gates == []
    assert load_config(None, IN_TREE, options.leader_election, options.deprecated) == load_config(None, IN_TREE)


def test_a_flag_may_be_given_again_where_it_is_a_list() -> None:
    options = options_of("--feature-gates=A=true --feature-gates=B=false --vmodule=x=1,y.*=2")

    assert options.feature_gates == ["A=true", "B=false"]
    assert options.modules == (("x", 1), ("y.*", 2))


def test_all_flags_are_shown_as_go_writes_them() -> None:
    given = (
        "--leader-elect=false --leader-elect-lease-duration=90s --vmodule=x=1,y=2 --plugin-dir=/a --plugin-dir=/b -v 2"
    )
    flags = options_of(given).flags

    shown = ("leader-elect", "leader-elect-lease-duration", "vmodule", "plugin-dir", "v", "secure-port", "config")
    assert [flags[name] for name in shown] == ["false", "1m30s", "x=1,y=2", "[/a,/b]", "2", "10259", ""]
    assert "authorization-always-allow-paths" in flags


def test_deprecated_flags_count_without_a_file_only(tmp_path: Path) -> None:
    flags = "--kube-api-qps=7 --profiling=false --pod-max-in-unschedulable-pods-duration=1m"
    deprecated = options_of(flags).deprecated
    path = tmp_path / "config.yaml"
    path.write_text(HEADER + "clientConnection: {qps: 9}\nloadmaster: {podMaxInUnschedulablePodsSeconds: 5}\n")

    without, beside = load_config(None, IN_TREE, {}, deprecated), load_config(str(path), IN_TREE, {}, deprecated)

    assert (without.client_connection.qps, without.enable_profiling) == (7, False)
    assert (beside.client_connection.qps, beside.enable_profiling) == (9, True)
    assert without.loadmaster.pod_max_in_unschedulable_pods_seconds == 60
    assert beside.loadmaster.pod_max_in_unschedulable_pods_seconds == 60


def test_a_deprecated_flag_is_checked_like_the_field(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEADER)

    for given in (None, str(path)):
        with pytest.raises(ConfigError, match="podMaxInUnschedulablePodsSeconds: Invalid value"):
            load_config(given, IN_TREE, {}, {"loadmaster.podMaxInUnschedulablePodsSeconds": -1.0})


def test_what_would_be_in_effect_is_written_instead_of_scheduling(tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"

    code, _ = run("--leader-elect-resource-name=mine", f"--write-config-to={written}")

    assert code == 0
    assert load_config(str(written), IN_TREE).leader_election.resource_name == "mine"


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ("GenericWorkloa", "unrecognized feature gate: GenericWorkloa; did you mean 'GenericWorkload'?"),
        ("TopologyAwareWorkloadScheduling", "TopologyAwareWorkloadScheduling is enabled, but depends on"),
    ],
)
def test_a_wrong_gate_ends_with_one_line(gate: str, problem: str) -> None:
    code, told = run(f"--feature-gates={gate}=true")

    assert code == WRONG_INPUT
    (line,) = told.splitlines()
    assert line.startswith(f"--feature-gates: {problem}")


def test_every_flag_of_leader_election_has_its_field() -> None:
    times = "lease-duration=1m renew-deadline=40s retry-period=500ms"
    fields = f"{times} resource-lock=leases resource-name= resource-namespace=mine".split()

    given = options_of(" ".join(["--leader-elect", *(f"--leader-elect-{each}" for each in fields)])).leader_election

    assert given == {
        "leaderElect": True,
        "leaseDuration": Duration(60),
        "renewDeadline": Duration(40),
        "retryPeriod": Duration(0.5),
        "resourceLock": "leases",
        "resourceName": "",
        "resourceNamespace": "mine",
    }


@pytest.mark.parametrize("text", ["false", "F", "0"])
def test_a_truth_is_written_as_in_go(text: str) -> None:
    assert options_of(f"--leader-elect={text}").leader_election == {"leaderElect": False}


def test_the_defaults_of_the_port_are_those_of_kube_scheduler() -> None:
    assert options_of("").serving == ServingOptions(
        secure_port=10259,
        bind_address="0.0.0.0",
        authentication_tolerate_lookup_failure=True,
        authentication_token_webhook_cache_ttl=10.0,
        authorization_always_allow_paths=("/healthz", "/readyz", "/livez"),
        authorization_webhook_cache_authorized_ttl=10.0,
        authorization_webhook_cache_unauthorized_ttl=10.0,
    )


@pytest.mark.parametrize(
    ("argument", "field", "value"),
    [
        ("--secure-port=0", "secure_port", 0),
        ("--bind-address=::1", "bind_address", "::1"),
        ("--bind-address=", "bind_address", "0.0.0.0"),
        ("--authentication-skip-lookup", "authentication_skip_lookup", True),
        ("--authentication-tolerate-lookup-failure=false", "authentication_tolerate_lookup_failure", False),
        ("--authentication-token-webhook-cache-ttl=1m30s", "authentication_token_webhook_cache_ttl", 90.0),
        ("--authorization-always-allow-paths=/livez,/a/*", "authorization_always_allow_paths", ("/livez", "/a/*")),
        ("--authorization-always-allow-paths=", "authorization_always_allow_paths", ()),
        ("--tls-cipher-suites=A,B", "tls_cipher_suites", ("A", "B")),
    ],
)
def test_options_of_the_port_are_spelt_as_in_kube_scheduler(argument: str, field: str, value: object) -> None:
    assert getattr(options_of(argument).serving, field) == value


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--secure-port=70000", "70000 is not between 0 and 65535"),
        ("--bind-address=everywhere", "does not appear to be an IPv4 or IPv6 address"),
        ("--authentication-token-webhook-cache-ttl=10", "not a duration: '10'"),
        ("--authentication-skip-lookup=perhaps", "not a boolean: 'perhaps'"),
        ("--profiling=2", "'2' is neither true nor false"),
        ("--leader-elect=no", "'no' is neither true nor false"),
        ("--leader-elect-retry-period=2", "not a duration: '2'"),
        ("--pod-max-in-unschedulable-pods-duration=5", "not a duration: '5'"),
        ("--vmodule=x", "x"),
    ],
)
def test_what_makes_no_sense_is_refused(argument: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(argument)

    assert said in capsys.readouterr().err
