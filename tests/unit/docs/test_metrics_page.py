"""The page about metrics is what the code defines, and says of each when to look."""

from tests.reference import metrics_page


def test_each_metric_has_a_word_on_when_to_look_and_no_other_has() -> None:
    defined = {each.name for each in metrics_page.definitions()}

    assert metrics_page.advice().keys() == defined, "in tests/reference/metrics.yaml"


def test_the_page_is_up_to_date() -> None:
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.text(), "run `make reference`"
