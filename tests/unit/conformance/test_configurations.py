"""kube-scheduler's own test configurations are accepted or refused as there, with the same in effect."""

from tests.conformance.configurations import RECORDED, differences, rows, verdict
from tests.conformance.recorded import read_cases


def test_every_configuration_has_the_same_verdict_and_the_same_effect() -> None:
    every = list(rows())

    assert len(every) >= 150
    assert [f"{name}: {difference}" for name, _, _, difference in every if difference] == []


def test_configurations_of_both_kinds_are_among_them() -> None:
    verdicts = {there for _, there, _, _ in rows()}

    assert verdicts == {"accepted", "refused"}


def test_another_effect_would_be_told() -> None:
    accepted = next(each for each in read_cases(RECORDED.parent) if each["expected"].get("config"))
    ours = verdict(accepted["case"]["text"])

    other_plugins = {name: {**points, "bind": []} for name, points in ours["plugins"].items()}
    other_settings = {**ours["config"], "parallelism": -1}

    assert list(differences(accepted["expected"], ours)) == []
    assert len(list(differences(accepted["expected"], {**ours, "plugins": other_plugins}))) == 1
    assert len(list(differences(accepted["expected"], {**ours, "config": other_settings}))) == 1
    assert len(list(differences(accepted["expected"], {"problems": ["x"]}))) == 1
