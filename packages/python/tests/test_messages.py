"""What the error of failed checks says, without a service."""

from typing import Any

import pytest

from agent_trading_service.messages import checks_failed


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (
            {"rule": "mandateTrade", "used": "31000000", "limit": "30000000"},
            "The check mandateTrade fails: 31.00 USDC, with a limit of 30.00 USDC.",
        ),
        (
            {"rule": "dailyTurnover", "used": "0", "after": "31000001", "limit": "30000000"},
            "The check dailyTurnover fails: 31.000001 USDC after the trade, with a limit of 30.00 USDC.",
        ),
        ({"rule": "dailyLoss", "used": "-9425916"}, "The check dailyLoss fails: -9.425916 USDC."),
        (
            {"rule": "maxDrawdown", "used": "850", "limit": "800"},
            "The check maxDrawdown fails: 8.5 %, with a limit of 8 %.",
        ),
        ({"rule": "freshPrice", "used": "5"}, "The check freshPrice fails."),
    ],
)
def test_a_failed_check_says_its_figures_with_their_units(check: dict[str, Any], sentence: str) -> None:
    details = checks_failed([{"code": "ANY", **check}]).details
    assert isinstance(details, dict)
    assert details["sentence"] == sentence
