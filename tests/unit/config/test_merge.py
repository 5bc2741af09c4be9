import pytest

from scheduler.config.defaults import DEFAULT_PLUGINS, merge_plugins, merge_set
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet


def refs(text: str) -> tuple[PluginRef, ...]:
    """`A B:3` is A without a weight, then B with weight 3."""
    pairs = (each.partition(":") for each in text.split())
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


@pytest.mark.parametrize(
    ("default", "enabled", "disabled", "expected"),
    [
        pytest.param("A B", "", "", "A B", id="nothing said"),
        pytest.param("A B", "C", "", "A B C", id="new ones come last"),
        pytest.param("A B C", "", "B", "A C", id="disabled ones go"),
        pytest.param("A B", "", "*", "", id="a star disables all"),
        pytest.param("A B", "C", "*", "C", id="a star spares what is enabled"),
        pytest.param("A:1 B:2", "B:9 C A:8", "", "A:8 B:9 C", id="new weights come in the old places"),
        pytest.param("A:1 B:2", "A:8", "A", "B:2 A:8", id="disabled and enabled moves to the end"),
        pytest.param("A B", "B A", "*", "B A", id="a new order"),
        pytest.param("", "A A", "", "A A", id="repetitions stay, to be refused later"),
    ],
)
def test_a_set_is_merged_as_kube_scheduler_does(default: str, enabled: str, disabled: str, expected: str) -> None:
    merged = merge_set(PluginSet(refs(default)), PluginSet(refs(enabled), refs(disabled)))

    assert merged == PluginSet(refs(expected), refs(disabled))


def test_what_the_default_disables_stays_disabled() -> None:
    merged = merge_set(PluginSet(refs("A"), refs("B")), PluginSet((), refs("C:5")))

    assert merged == PluginSet(refs("A"), refs("C B"))


def test_each_set_is_merged_for_itself() -> None:
    merged = merge_plugins(DEFAULT_PLUGINS, Plugins(score=PluginSet((), refs("*"))))

    assert merged.multi_point == DEFAULT_PLUGINS.multi_point
    assert merged.score == PluginSet((), refs("*"))
