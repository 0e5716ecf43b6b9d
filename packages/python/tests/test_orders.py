import asyncio
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount

from agent_trading_service import (
    AsyncClient,
    Client,
    ExitRule,
    NotFoundError,
    ValidationError,
)

from .conftest import Service

DAY = 86_400


@pytest.mark.long
def test_the_service_takes_every_kind_of_order(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)

    async def place() -> list[dict[str, Any]]:
        async with AsyncClient(service.url, account=account) as client:
            agent = client.agent(agent_id)
            position = int((await agent.open("META", usdc=50, stop="8%"))["positionId"])
            now = int((await client.get_agent(agent_id))["asOf"]["blockTimestamp"])
            orders = agent.orders
            exits = [ExitRule(-800, 5_000), ExitRule(-1_200)]
            await orders.breakout("GOOGL", usdc=20, at=400, exits=exits, until=now + DAY)
            await orders.limit(position, usdc="20.5", at="0.12345678", max_slippage="2%", after=now + 60)
            await orders.stop("META", at=1, share="50%")
            await orders.take_profit(position, at=10_000)
            await orders.trailing_stop(position, trail=500, activate_at=9_999, share=2_500)
            await orders.twap("COST", usdc="100", parts=10, every=900, stop="8%", take="15%")
            await orders.twap(position, share="100%", parts=2, every=3_600, after=now + DAY)
            await orders.time_exit("META", after=now + DAY, key=7)
            await orders.time_exit("META", after=now + 2 * DAY, key=7)
            open_orders: list[dict[str, Any]] = (await orders.list(state="open"))["orders"]
            return list(reversed(open_orders))

    placed = asyncio.run(place())
    assert [(order["side"], order["condition"], order["price"]) for order in placed] == [
        ("open", "atOrAbove", "400"),
        ("add", "atOrBelow", "0.12345678"),
        ("reduce", "atOrBelow", "1"),
        ("reduce", "atOrAbove", "10000"),
        ("reduce", "trailing", "9999"),
        ("open", "none", None),
        ("reduce", "none", None),
        ("reduce", "none", None),
    ]
    assert [(order["exitBps"], order["parts"], order["interval"]) for order in placed[2:]] == [
        (5_000, 1, "0"),
        (10_000, 1, "0"),
        (2_500, 1, "0"),
        (0, 10, "900"),
        (10_000, 2, "3600"),
        (10_000, 1, "0"),
    ]
    assert len({order["validUntil"] for order in placed}) >= 3


def test_an_order_that_says_too_little_or_too_much_is_not_quoted(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)
    with Client(service.url, account=account, pins=service.pins) as client:
        orders = client.agent(agent_id).orders
        for price in ("1.123456789", "-1", 0, 1.5):
            with pytest.raises(ValidationError):
                orders.limit("NVDA", usdc=50, at=price, stop="8%")  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match="no exit"):
            orders.limit("NVDA", usdc=50, at=100)
        with pytest.raises(ValidationError, match="usdc or share"):
            orders.twap("NVDA", parts=2, every=60)
        with pytest.raises(ValidationError, match="orderId"):
            orders.get("7")
        with pytest.raises(NotFoundError, match="no open position in NVDA"):
            orders.stop("NVDA", at=100)
