import pytest

from tests.bench.gotemplate import Template, TemplateError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("name: pod-{{.Index}}", "name: pod-27", id="the index"),
        pytest.param("maxSkew: {{ .Count }}", "maxSkew: 1000", id="the count, with spaces"),
        pytest.param("hostPort: 8{{ Mod .Index 12 }}", "hostPort: 83", id="a remainder"),
        pytest.param("memory: {{ DivideInt 30000 .Count }}Mi", "memory: 30Mi", id="a division without a rest"),
        pytest.param("{{DivideInt .Index 5}}", "5", id="a division that is cut"),
        pytest.param("{{SubtractInt 3 .Index}} {{AddInt 1 2 3}} {{MultiplyInt 2 1.5}}", "-24 6 3", id="more than one"),
        pytest.param("{{DivideFloat .Index 2}} {{AddFloat 1 1}}", "13.5 2", id="floats, printed as Go does"),
        pytest.param("{{Mod -7 3}}", "-1", id="a remainder has the sign of the first"),
        pytest.param("no action", "no action", id="none"),
    ],
)
def test_actions_are_filled_in(text: str, expected: str) -> None:
    assert Template(text).render(index=27, count=1000) == expected


@pytest.mark.parametrize(
    "text",
    ["{{if .Index}}", "{{.Name}}", "{{}}", "{{DivideInt 1 0}}", "{{Mod .Index}}", "{{Upper .Index}}"],
)
def test_what_is_not_supported_is_an_error(text: str) -> None:
    with pytest.raises(TemplateError):
        Template(text).render(0, 1)


def test_a_template_without_actions_does_not_vary() -> None:
    assert not Template("kind: Pod").varies
    assert Template("name: {{.Index}}").varies
