import pytest

from tests.bench.objects import Names, ObjectTemplate, parse


def test_a_name_is_given_to_what_has_only_a_prefix() -> None:
    names = Names()
    pod, other = {"metadata": {"generateName": "pod-"}}, {"metadata": {"name": "mine"}}

    assert [names.give(pod), names.give(other), names.give({})] == ["pod-00000", "mine", "object-00001"]
    assert pod == {"metadata": {"name": "pod-00000"}}


@pytest.mark.parametrize("suffix", ["", "-{{.Index}}"], ids=["all alike", "each its own"])
def test_the_objects_of_a_template_are_independent(suffix: str) -> None:
    template = ObjectTemplate("{kind: Pod, metadata: {name: 'a" + suffix + "'}}")

    first = template.make(0, 2)
    first["metadata"]["name"] = "changed"

    assert template.make(0, 2)["metadata"]["name"].startswith("a")


def test_field_names_of_spread_constraints_are_read_whatever_their_case() -> None:
    pod = parse("{kind: Pod, spec: {topologySpreadConstraints: [{maxSkew: 1, NodeTaintsPolicy: Honor}]}}")

    assert pod["spec"]["topologySpreadConstraints"] == [{"maxSkew": 1, "nodeTaintsPolicy": "Honor"}]
