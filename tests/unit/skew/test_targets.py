import pytest

from tests.controlplane import Settings
from tests.controlplane.versions import EMULATED, OWN, VERSIONS, emulating
from tests.skew.__main__ import parsed
from tests.skew.targets import TARGETS


def test_each_version_is_a_control_plane_that_the_callers_variables_do_not_change() -> None:
    given = {"PATH": "/bin", "KUBEBUILDER_ASSETS": "/mine", "LOADMASTER_CLUSTER": "kind", "LOADMASTER_EMULATED": "1.34"}

    found = {name: target.environment(given) for name, target in TARGETS.items()}

    assert {name: found[name] for name in VERSIONS} == {
        version: {"PATH": "/bin", "LOADMASTER_KUBERNETES": version} for version in VERSIONS
    }
    assert found["1.34-emulated"] == {
        "PATH": "/bin",
        "LOADMASTER_KUBERNETES": OWN,
        "LOADMASTER_EMULATED": "1.34",
    }


def test_a_column_is_named_by_its_patch_release_or_by_what_is_emulated() -> None:
    assert TARGETS["1.34-emulated"].title == "1.34, emulated"
    assert TARGETS["1.36"].title.startswith("1.36.")
    assert len({target.title for target in TARGETS.values()}) == len(TARGETS) == len(VERSIONS) + len(EMULATED)


def test_an_emulated_version_is_said_to_both_programs_before_their_other_flags() -> None:
    settings = Settings(apiserver_flags=("--v=2",))

    found = emulating(settings, {"LOADMASTER_EMULATED": "1.34"})

    assert found.apiserver_flags == ("--emulated-version=1.34", "--v=2")
    assert found.controller_manager_flags == ("--emulated-version=1.34",)
    assert emulating(settings, {}) is settings


def test_a_usual_run_is_of_all_versions_and_none_is_for_the_table_alone() -> None:
    assert parsed([]).versions == list(VERSIONS)
    assert parsed(["1.34", "1.34-emulated"]).versions == ["1.34", "1.34-emulated"]
    assert parsed(["none"]).versions == []


def test_a_version_that_is_not_known_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parsed(["1.30", "1.36"])

    assert stopped.value.code == 2
    assert "1.30: the versions are 1.34-emulated, 1.35-emulated" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed(["1.36", "--files", "dra"]).files == ["dra"]

    with pytest.raises(SystemExit) as stopped:
        parsed(["1.36", "--files", "dra", "banana"])

    assert stopped.value.code == 2
    assert "there is no test_banana.py in tests/cluster" in capsys.readouterr().err
