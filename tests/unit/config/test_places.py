"""From the path of a field to its line."""

import pytest

from scheduler.config.places import lines_of, with_lines

YAML = """\
apiVersion: kubescheduler.config.k8s.io/v1
profiles:
  - schedulerName: a
    plugins:
      score:
        enabled:
          - name: X
            weight: 2
  - &b
    schedulerName: "b"
  - *b
leaderElection: {leaseDuration: 1s,
  retryPeriod: 2s}
"key: with a colon": 1
"""


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("apiVersion: expected something else", 1),
        ("profiles[0].plugins.score.enabled[0].weight: Invalid value", 8),
        ("profiles[0].plugins.score.enabled[0]: Duplicate value", 7),
        ("profiles[1].schedulerName: Required value", 10),
        ("profiles[2]: something about an alias", 11),
        ("leaderElection.retryPeriod: Invalid value", 13),
        ("key: with a colon: unknown field", 14),
        pytest.param("leaderElection.renewDeadline: Invalid value", 12, id="what is not there: where it would be"),
        pytest.param(
            "profiles[0].pluginConfig[NodeName].args.x: Required value", 3, id="deep within what is not there"
        ),
        pytest.param("kind: expected KubeSchedulerConfiguration", 1, id="the whole file lacks it"),
        pytest.param("expected a mapping", 1, id="without a path"),
    ],
)
def test_a_problem_has_the_line_of_its_field(problem: str, line: int) -> None:
    assert with_lines([problem], YAML, "f") == [f"f:{line}: {problem}"]


def test_json_has_lines_too_even_with_tabs() -> None:
    text = '{\n\t"profiles": [\n\t\t{"schedulerName": 5}\n\t]\n}'

    assert lines_of(text) == {"": 1, "profiles": 2, "profiles[0]": 3, "profiles[0].schedulerName": 3}


def test_only_the_first_document_counts() -> None:
    assert lines_of("a: 1\n---\na: 2\nb: 3\n") == {"": 1, "a": 1}


def test_what_comes_before_a_syntax_error_is_known() -> None:
    assert lines_of("a: 1\nb: [") == {"": 1, "a": 1, "b": 2}
