"""A few random lives of groups; `python -m tests.campaigns.groups` plays as many as are wanted."""

import pytest

from tests.campaigns.groups.campaign import CAMPAIGN


@pytest.mark.parametrize("number", range(20))
def test_no_rule_of_groups_is_violated_over_time(number: int) -> None:
    assert CAMPAIGN.play(1, number).findings == []
