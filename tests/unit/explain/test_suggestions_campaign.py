"""A few clusters of the campaign; `python -m tests.campaigns.suggestions` searches as many as are wanted."""

from tests.campaigns.suggestions.campaign import search


def test_suggestions_for_random_clusters_are_true_and_the_same_in_any_order() -> None:
    failures: list[str] = []

    figures = search(9, 6, failures.append)

    assert failures == []
    assert figures.suggestions > 10
