"""kube-scheduler's switches: which are obeyed, which refused, and which without effect."""

import pytest

from scheduler.config.feature_gates import OF_PLUGINS, OURS, REMOVED, FeatureGates, known_gates, read_gates
from scheduler.framework.errors import ConfigError


def problems_of(*texts: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_gates(texts)
    return list(caught.value.problems)


def test_without_the_flag_and_with_its_defaults_everything_is_at_its_default() -> None:
    assert read_gates([]) == (FeatureGates(), ())
    gates, notes = read_gates(["GenericWorkload=false,DynamicResourceAllocation=true"])
    assert (dict(gates.states()), notes) == (dict(FeatureGates().states()), ())


def test_what_is_ours_is_obeyed_and_a_later_flag_wins() -> None:
    gates, notes = read_gates(["ComponentFlagz=true, ComponentStatusz=true", "ComponentFlagz=false"])

    assert gates.component_statusz
    assert not gates.component_flagz
    assert notes == ()


def test_gates_that_plugins_ask_for_are_told_to_them() -> None:
    on, _ = read_gates(["DRAFractionalCapacityRange=true"])
    off, _ = read_gates([])

    assert on.switched_on() == {"DRAFractionalCapacityRange"}
    assert not off.switched_on()
    assert not any(known_gates()[name].default for name in OF_PLUGINS)


def test_what_concerns_others_has_no_effect_and_that_is_said() -> None:
    assert read_gates(["CSIVolumeHealth=true"])[1] == ("--feature-gates CSIVolumeHealth=true has no effect here",)


def test_all_of_a_stage_turns_off_ours_too() -> None:
    with pytest.raises(ConfigError, match=r"AllBeta=false would change .*VolumeLimitScaling"):
        read_gates(["AllBeta=false"])


def test_the_state_of_every_gate_is_told_with_its_stage() -> None:
    gates, _ = read_gates(["AllAlpha=false", "ComponentFlagz=false", "CSIVolumeHealth=true"])
    states = dict(gates.states())

    assert len(states) == len(known_gates()) > 200
    assert known_gates().keys() >= OURS.keys()
    assert states["ComponentFlagz", "BETA"] == 0
    assert states["ComponentStatusz", "BETA"] == 1
    assert states["CSIVolumeHealth", "ALPHA"] == 1
    assert states["GenericWorkload", "BETA"] == 0
    assert states["DynamicResourceAllocation", ""] == 1
    assert states["KMSv1", "DEPRECATED"] == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("GenericWorkloa=true", "unrecognized feature gate: GenericWorkloa; did you mean 'GenericWorkload'?"),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "DRAPartitionableDevices=false",
            "DRAPartitionableDevices changes how pods are scheduled, and is always true in this version of Loadmaster",
        ),
        (
            "PodGroupPreemptionPolicy=true",
            "PodGroupPreemptionPolicy is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "TopologyAwareWorkloadScheduling=true",
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        ("GenericWorkload", "missing bool value for GenericWorkload"),
        ("GenericWorkload=on", "invalid value of GenericWorkload=on: it is neither true nor false"),
    ],
)
def test_what_cannot_be_is_refused(text: str, problem: str) -> None:
    assert problems_of(text) == [f"--feature-gates: {problem}"]


def test_all_problems_are_told_at_once() -> None:
    assert len(problems_of("A=1,B", "DRAPartitionableDevices=f")) == 3


def test_a_gate_is_on_with_all_that_it_depends_on() -> None:
    gates, notes = read_gates(["TopologyAwareWorkloadScheduling=true,GenericWorkload=true"])

    assert (gates.generic_workload, gates.topology_aware_workload_scheduling, notes) == (True, True, ())


def test_a_gate_that_1_37_removed_is_accepted_once_more_and_that_is_said() -> None:
    gates, notes = read_gates(["GangScheduling=true,SidecarContainers=false"])

    assert gates == FeatureGates()
    gone = "has no effect: Kubernetes 1.37 removed this gate, and the next version refuses it"
    assert notes == tuple(
        f"--feature-gates {pair} {gone}" for pair in ("GangScheduling=true", "SidecarContainers=false")
    )
    assert not REMOVED & known_gates().keys()
