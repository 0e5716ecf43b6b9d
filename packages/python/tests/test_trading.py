import asyncio
from decimal import Decimal
from typing import Any

import pytest
from eth_account import Account as Keys
from eth_account.signers.local import LocalAccount

from agent_trading_service import (
    AgentTradingError,
    AsyncAgent,
    AsyncClient,
    Client,
    Event,
    ExitRule,
    RefusedError,
    Submission,
    UntrustedQuoteError,
    ValidationError,
    frame,
    rows,
)

from .conftest import Service


def test_an_agent_lives_from_its_registration_to_a_closed_position(service: Service, account: LocalAccount) -> None:
    posted: list[Submission] = []
    agent_id = service.register(account)
    with Client(
        service.url,
        account=account,
        pins=service.pins,
        rpc_url=service.deployment["rpcUrl"],
        on_submission=posted.append,
    ) as client:
        agent = client.agent(agent_id)
        position = int(agent.open("NVDA", usdc="50", stop="8%", take="15%")["positionId"])
        agent.add(position, usdc=Decimal("12.5"), note="averaging down")
        agent.set_ladder(position, stop="7%", take="16%")
        agent.reduce(position, "50%")
        receipt = agent.close(position)
        assert client.get(f"/agents/{agent_id}/positions/{position}")["position"]["status"] == "Closed"

        # A body that is posted again is not executed again.
        assert client.resume(posted[-1])["transactionHash"] == receipt["transactionHash"]
        trades = client.get(f"/agents/{agent_id}/trades")["trades"]
        assert len({trade["transactionHash"] for trade in trades}) == 5
        assert [trade["note"] for trade in trades if trade["type"] == "PositionIncreased"] == ["averaging down"]
        assert receipt["realizedPnlUsdc"] == trades[0]["realizedPnlUsdc"]


def test_a_trade_is_sized_by_the_most_that_the_stops_of_its_position_may_lose(
    service: Service, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    rpc_url = service.deployment["rpcUrl"]
    with Client(service.url, account=account, pins=service.pins, rpc_url=rpc_url) as client:
        agent = client.agent(agent_id)
        cost = []
        position = int(agent.open("NVDA", max_loss_usdc="4", stop="8%")["positionId"])
        for max_loss in (None, "10"):
            if max_loss:
                agent.add(position, max_loss_usdc=max_loss)
            path = f"/agents/{agent_id}/positions/{position}"
            cost.append(Decimal(client.get(path)["position"]["usdcCostBasis"]) / 10**6)
        # A stop at 8 % that sells 3 % below the oracle loses 10.76 %.
        assert cost == [Decimal("37.174721"), Decimal("92.936802")]
        refused: list[dict[str, Any]] = [
            {"usdc": 50, "max_loss_usdc": 4, "stop": "8%"},
            {"stop": "8%"},
            {"usdc": 50, "stop": "8%", "exits": [ExitRule(-800)]},
            {"usdc": 50, "stop": "100%"},
            {"usdc": 50, "stop": "8.125%"},
        ]
        for request in refused:
            with pytest.raises(ValidationError):
                agent.open("AAPL", **request)


@pytest.mark.long
def test_concurrent_trades_of_one_agent_wait_for_each_other(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)

    async def trade() -> list[str]:
        async with AsyncClient(service.url, account=account, pins=service.pins) as client:
            agent = client.agent(agent_id)
            receipts = await asyncio.gather(
                *(agent.open(symbol, usdc=20, stop="8%") for symbol in ("NVDA", "AAPL", "MSFT"))
            )
            return [receipt["positionId"] for receipt in receipts]

    assert len(set(asyncio.run(trade()))) == 3


@pytest.mark.long
def test_an_owner_limits_and_stops_its_agent(service: Service, account: LocalAccount) -> None:
    owner = Keys.create()
    with Client(service.url, account=account, pins=service.pins) as client:
        receipt = client.register(name="owned", owner=owner, payer=service.payer)
        agent_id = int(receipt["agentId"])
        client.owner(agent_id, owner).set_mandate(max_trade_usdc="30", allowed_tokens=["NVDA", "AAPL"])
        with pytest.raises(RefusedError) as refusal:
            client.agent(agent_id).open("NVDA", usdc="31", stop="8%")
        assert refusal.value.code == "CHECKS_FAILED"
        assert isinstance(refusal.value.details, dict)
        assert refusal.value.details["code"] == "EXCEEDS_MANDATE_TRADE"
        assert refusal.value.details["sentence"] == (
            "The check mandateTrade fails: 31.00 USDC after the trade, with a limit of 30.00 USDC."
        )
        client.agent(agent_id).open("NVDA", usdc="30", stop="8%")
        stopped = client.owner(agent_id, owner).stop(sell=True)
        assert stopped["mandate"]["mode"] == "reduceOnly"


@pytest.mark.long
def test_events_arrive_and_resume_by_id(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)

    async def follow() -> None:
        async with AsyncClient(service.url, account=account, pins=service.pins) as client:
            agent = client.agent(agent_id)
            listening = asyncio.create_task(next_trade(agent, None))
            while not listening.done():
                position = int((await agent.open("NVDA", usdc=20, stop="8%"))["positionId"])
                closed = await agent.close(position)
            first = await listening
            trades = [first.data["transactionHash"]]
            while trades[-1] != closed["transactionHash"]:
                event = await next_trade(agent, first.id)
                assert event.id != first.id
                first = event
                trades.append(event.data["transactionHash"])
            assert len(set(trades)) == len(trades)

    asyncio.run(follow())


async def next_trade(agent: AsyncAgent, last_event_id: str | None) -> Event:
    async for event in agent.events(last_event_id=last_event_id):
        if event.type == "trade":
            return event
    raise AssertionError("the stream ended")


@pytest.mark.long
def test_a_webhook_is_created_tested_rotated_and_deleted(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)

    async def follow() -> None:
        async with AsyncClient(service.url, account=account, pins=service.pins) as client:
            webhooks = client.agent(agent_id).webhooks
            created = await webhooks.create("https://agents.example/events", event_types=["trade", "risk"])
            webhook_id = created["webhook"]["webhookId"]
            rotated = await webhooks.rotate_secret(webhook_id)
            assert created["secret"].startswith("whsec_")
            assert rotated["secret"] != created["secret"]
            [listed] = (await webhooks.list())["webhooks"]
            assert (listed["webhookId"], listed["eventTypes"]) == (webhook_id, ["trade", "risk"])
            await webhooks.delete(webhook_id)
            assert (await webhooks.list())["webhooks"] == []

    asyncio.run(follow())


def test_what_a_trade_would_do_is_shown_and_not_done(service: Service, account: LocalAccount) -> None:
    agent_id = str(service.register(account))
    with Client(service.url, account=account, pins=service.pins) as client:
        agent = client.agent(agent_id)
        intent = {
            "kind": "open",
            "symbol": "NVDA",
            "usdcAmount": "50",
            "exits": [{"triggerBps": -800, "exitBps": 10_000}],
        }
        shown = agent.what_if(prices={"NVDA": Decimal("110")}, intents=[intent])
        assert shown["after"]
        assert client.list_positions(agent_id)["positions"] == []
        candles = client.get_candles("NVDA")["candles"]
        assert len(frame(candles)) == len(rows(candles)) == len(candles["t"])
        [tokens, stats] = [client.list_tokens()["tokens"], client.get_agent_stats(agent_id)]
        assert {"NVDA", "AAPL"} <= set(frame(tokens)["symbol"])
        assert rows(stats)


def test_an_owner_locks_first_loss_capital_only_with_shares_that_it_has(
    service: Service, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    with Client(service.url, account=account, pins=service.pins, rpc_url=service.deployment["rpcUrl"]) as client:
        with pytest.raises(AgentTradingError) as refusal:
            client.owner(agent_id).lock_first_loss(10**12)
        assert not isinstance(refusal.value, UntrustedQuoteError)
        assert refusal.value.remedy and refusal.value.request_id
        with pytest.raises(AgentTradingError) as refusal:
            client.owner(agent_id).link_erc8004(4_242)
        assert not isinstance(refusal.value, UntrustedQuoteError)


def test_amounts_are_never_rounded_and_never_floats(service: Service, account: LocalAccount) -> None:
    with Client(service.url, account=account) as client:
        for amount in ("1.2345678", "-1", "1e3", 0, 1.5, True):
            with pytest.raises(ValidationError):
                client.agent(1).open("NVDA", usdc=amount, stop="8%")  # type: ignore[arg-type]
