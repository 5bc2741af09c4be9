"""kube-scheduler's own test configurations are accepted or refused as there, with the same in effect."""

from tests.conformance.configurations import rows


def test_every_configuration_has_the_same_verdict_and_the_same_effect() -> None:
    every = list(rows())

    assert len(every) >= 150
    assert [f"{name}: {difference}" for name, _, _, difference in every if difference] == []


def test_configurations_of_both_kinds_are_among_them() -> None:
    verdicts = {there for _, there, _, _ in rows()}

    assert verdicts == {"accepted", "refused"}
