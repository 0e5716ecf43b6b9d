import asyncio
import subprocess
from typing import Any

import httpx
import pytest
from eth_account import Account as Keys
from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from agent_trading_service import (
    AsyncClient,
    Client,
    ExitRule,
    NotFoundError,
    RefusedError,
    Submission,
    ValidationError,
)

from .conftest import ROOT, Service

ORDER = (
    "(uint256,uint8,address,uint256,uint256,uint16,(uint8,int256,uint16)[],uint16,uint8,uint256,uint16,uint256,uint256,"
    "uint8,uint256,uint256,uint256,uint256)"
)
DAY = 86_400


def set_price(symbol: str, usd: str) -> None:
    node = ROOT / "node_modules/.bin/node"
    subprocess.run([node, "devnet/price.ts", symbol, usd], cwd=ROOT, check=True, capture_output=True)


def execute(service: Service, order: dict[str, Any]) -> None:
    """Executes an order with the content of its event, from an account that nobody knows."""

    def rpc(method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx.post(service.deployment["rpcUrl"], json=body, timeout=30).json()["result"]

    placed = "0x" + keccak(text=f"OrderPlaced(bytes32,uint256,uint256,{ORDER},uint256)").hex()
    logs = rpc("eth_getTransactionReceipt", order["transactionHash"])["logs"]
    [event] = [bytes.fromhex(log["data"][2:]) for log in logs if log["topics"][0] == placed]
    # The event's data are the place of the order, the peak and the order.
    call = keccak(text=f"executeOrder({ORDER})")[:4] + (32).to_bytes(32, "big") + event[64:]
    stranger = Keys.create()
    rpc("anvil_setBalance", stranger.address, hex(10**18))
    transaction = {
        "chainId": service.deployment["chainId"],
        "to": service.deployment["contracts"]["OrderBook"],
        "data": call,
        "gas": 3_000_000,
        "gasPrice": int(rpc("eth_gasPrice"), 16) * 2,
        "nonce": 0,
    }
    rpc("eth_sendRawTransaction", "0x" + stranger.sign_transaction(transaction).raw_transaction.hex())
    rpc("evm_mine")


def test_an_order_waits_for_its_price_and_protects_what_it_bought(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)
    rpc_url = service.deployment["rpcUrl"]
    posted: list[Submission] = []
    with Client(
        service.url, account=account, pins=service.pins, rpc_url=rpc_url, on_submission=posted.append
    ) as client:
        agent = client.agent(agent_id)
        placed = agent.orders.limit("AMZN", usdc="50", at="240.5", stop="8%", note="dip")
        assert (placed["state"], posted[0].body["note"]) == ("open", "dip")
        [waiting] = agent.orders.list(state="open")["orders"]
        assert (waiting["orderId"], waiting["triggerUsd"]) == (placed["orderId"], "240.5")

        set_price("AMZN", "240")
        execute(service, waiting)
        filled = agent.orders.get(placed["orderId"])
        assert (filled["state"], filled["partsDone"]) == ("filled", 1)
        position = client.get(f"/agents/{agent_id}/positions/{filled['positionId']}")["position"]
        assert [rule["triggerBps"] for rule in position["pendingRules"]] == [-800]

        trail = agent.orders.trailing_stop("AMZN", trail="5%")
        assert agent.orders.get(trail["orderId"])["triggerUsd"] == "228"
        # An order and a trade take the same nonces.
        agent.reduce(int(filled["positionId"]), "50%")
        assert agent.orders.cancel(trail["orderId"])["state"] == "cancelled"
        assert [order["state"] for order in agent.orders.list(state="past")["orders"]] == ["cancelled", "filled"]
        with pytest.raises(RefusedError) as refusal:
            agent.orders.cancel(trail["orderId"])
        assert isinstance(refusal.value.details, dict)
        assert refusal.value.details["code"] == "ORDER_NOT_OPEN"


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
