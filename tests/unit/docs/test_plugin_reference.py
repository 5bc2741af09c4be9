"""The reference of what plugins get is what the code says."""

from tests.reference import plugin_page


def test_the_reference_is_up_to_date() -> None:
    assert plugin_page.PAGE.read_text(encoding="utf-8") == plugin_page.text(), "run `make reference`"
