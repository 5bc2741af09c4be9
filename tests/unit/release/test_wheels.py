from tests.release import wheels


def test_each_python_of_the_classifiers_is_asked_for() -> None:
    assert wheels.pythons() == ["3.11", "3.12", "3.13", "3.14"]
