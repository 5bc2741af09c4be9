"""A few random clusters with quotas; `python -m tests.campaigns.quota` plays as many as are wanted."""

import pytest

from tests.campaigns.quota.campaign import CAMPAIGN


@pytest.mark.parametrize("number", range(20))
def test_no_rule_of_quota_is_violated_over_time(number: int) -> None:
    assert CAMPAIGN.play(1, number).findings == []
