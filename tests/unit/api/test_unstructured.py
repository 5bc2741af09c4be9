from typing import Any

import msgspec
import pytest

from scheduler.api.decoding import Unreadable
from scheduler.api.unstructured import Unstructured, unstructured_hook

BUDGET: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Budget",
    "metadata": {"name": "shop", "namespace": "web", "uid": "1", "resourceVersion": "7", "labels": {"a": "b"}},
    "spec": {"pool": "blue"},
}


def test_an_object_has_its_metadata_read_and_the_rest_as_it_came() -> None:
    budget = Unstructured.from_dict(BUDGET)

    assert (budget.name, budget.namespace) == ("shop", "web")
    assert (budget.metadata.uid, budget.metadata.resource_version, budget.metadata.labels) == ("1", "7", {"a": "b"})
    assert budget["spec"] == {"pool": "blue"}
    assert budget.get("status") is None
    assert budget.get("status", {}) == {}
    assert budget.content == BUDGET
    assert repr(budget) == "<Budget web/shop>"
    with pytest.raises(KeyError, match="status"):
        budget["status"]


def test_managed_fields_are_left_out_and_what_was_given_stays_as_it_is() -> None:
    managed = {**BUDGET, "metadata": {**BUDGET["metadata"], "managedFields": [{"manager": "kubectl"}]}}

    budget = Unstructured.from_dict(managed)

    assert budget["metadata"] == BUDGET["metadata"]
    assert "managedFields" in managed["metadata"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param({}, "missing required field `metadata`", id="no metadata"),
        pytest.param({"metadata": {"name": 3}}, r"Expected `str`, got `int` - at `\$.metadata.name`", id="wrong type"),
    ],
)
def test_an_object_that_is_none_is_refused_with_the_field(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        Unstructured.from_dict(content)


def test_lists_of_objects_are_decoded_from_json() -> None:
    decoder = msgspec.json.Decoder(list[Unstructured], dec_hook=unstructured_hook)

    assert [each.name for each in decoder.decode(msgspec.json.encode([BUDGET]))] == ["shop"]
    with pytest.raises(msgspec.ValidationError, match="Expected `object`, got `int`"):
        decoder.decode(b"[1]")


def test_only_unstructured_objects_are_read_this_way() -> None:
    with pytest.raises(NotImplementedError, match="nothing reads a complex"):
        unstructured_hook(complex, 1)


def test_of_an_object_only_the_parts_that_are_read_are_kept() -> None:
    template = {"spec": {"containers": [{"name": "main"}]}}
    owner = Unstructured.from_dict(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}, "annotations": {"x": "y" * 1000}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
            "status": {"replicas": 3},
        }
    )

    owner.keep_only(["spec.selector", "status.replicas", "status.none", "other.none", "spec.selector.none.none"])

    assert owner.content == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"replicas": 3},
    }
    assert (owner.name, owner.namespace, owner.metadata.labels) == ("web", "shop", {"a": "b"})


def test_parts_of_the_items_of_a_list_can_be_kept() -> None:
    job_set = Unstructured.from_dict(
        {
            "metadata": {"name": "js"},
            "spec": {"jobs": [{"name": "a", "template": {"spec": {"n": 2, "big": "x"}}}, "odd", {"name": "b"}]},
        }
    )

    job_set.keep_only(["spec.jobs.name", "spec.jobs.template.spec.n"])

    assert job_set.content == {"spec": {"jobs": [{"name": "a", "template": {"spec": {"n": 2}}}, {}, {"name": "b"}]}}
