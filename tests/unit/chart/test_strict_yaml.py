import pytest

from tests.chart import DuplicateKeyError, load_documents


def test_documents_that_are_empty_are_left_out() -> None:
    assert load_documents("---\n# nothing\n---\na: 1\n---\n- b\n") == [{"a": 1}, ["b"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: 1\nb: 2\na: 1\n", "line 3: the key 'a' comes twice", id="at the top"),
        pytest.param("x:\n  - {a: 1, a: 2}\n", "line 2: the key 'a' comes twice", id="in a list"),
        pytest.param("a: 1\n'a': 2\n", "line 2: the key 'a' comes twice", id="in quotation marks"),
    ],
)
def test_a_key_that_comes_twice_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(DuplicateKeyError, match=said):
        load_documents(text)


def test_the_same_key_in_two_maps_is_fine() -> None:
    assert load_documents("x: {a: 1}\ny: {a: 2}\n") == [{"x": {"a": 1}, "y": {"a": 2}}]
