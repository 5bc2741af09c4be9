"""The page about metrics has each that the code defines, and says when to look."""

from tests.reference import metrics_page


def test_each_metric_has_its_meaning_and_no_other_has() -> None:
    defined = {each.name for each in metrics_page.definitions()}

    assert metrics_page.advice().keys() == defined, "in tests/reference/metrics.yaml"


def test_the_page_is_up_to_date() -> None:
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.text(), "run `make reference`"
