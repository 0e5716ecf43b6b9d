"""The client signs nothing that was not asked for, whatever the service says, and never trades twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount

from agent_trading_service import Client, Payer, Pins, RefusedError, UntrustedQuoteError
from agent_trading_service.typed_data import TypedData, digest_of

from .conftest import Service
from .lying_service import Json, LyingService

pytestmark = pytest.mark.long

STRANGER = "0x00000000000000000000000000000000000000b2"


class CountingAccount:
    def __init__(self, account: LocalAccount) -> None:
        self._account = account
        self.address = account.address
        self.signatures = 0

    def sign_typed_data(self, *, full_message: TypedData) -> Any:
        self.signatures += 1
        return self._account.sign_typed_data(full_message=full_message)


@pytest.fixture
def lying(service: Service) -> Iterator[LyingService]:
    proxy = LyingService(service.url)
    yield proxy
    proxy.stop()


def in_quotes(change: Callable[[Json], None]) -> Callable[[str, Json], Json]:
    """Changes the typed data of each quote, and body and digest with it, so that the quote agrees with itself."""

    def lie(path: str, body: Json) -> Json:
        if "/quote" not in path or "typedData" not in body:
            return body
        change(body["typedData"])
        message = body["typedData"]["message"]
        for name in body["body"].keys() & message.keys():
            if name not in ("usdcAmount", "price", "side", "condition"):  # which bodies have in other units
                body["body"][name] = message[name]
        body["nonce"] = message["nonce"]
        body["digest"] = digest_of(body["typedData"])
        return body

    return lie


def message(name: str, value: Any) -> Callable[[Json], None]:
    return lambda typed_data: typed_data["message"].update({name: value})


def domain(name: str, value: Any) -> Callable[[Json], None]:
    return lambda typed_data: typed_data["domain"].update({name: value})


LIES: list[tuple[str, str, Callable[[Json], None]]] = [
    ("vault", "QUOTE_VAULT_MISMATCH", message("vault", STRANGER)),
    ("token", "QUOTE_TOKEN_MISMATCH", message("token", STRANGER)),
    ("amount", "QUOTE_USDC_AMOUNT_MISMATCH", message("usdcAmount", "900000000")),
    ("exits", "QUOTE_EXITS_HASH_MISMATCH", message("exitsHash", "0x" + "11" * 32)),
    ("nonce", "QUOTE_NONCE_MISMATCH", message("nonce", "7")),
    ("deadline", "QUOTE_DEADLINE_MISMATCH", message("deadline", "4102444800")),
    ("slippage", "QUOTE_MAX_SLIPPAGE_BPS_MISMATCH", message("maxSlippageBps", 5_000)),
    ("minimum", "QUOTE_MIN_TOKEN_OUT_MISMATCH", message("minTokenOut", "1")),
    ("agent", "QUOTE_AGENT_ID_MISMATCH", message("agentId", "999")),
    ("chain", "QUOTE_CHAIN_ID_MISMATCH", domain("chainId", 1)),
    ("contract", "QUOTE_CONTRACT_MISMATCH", domain("verifyingContract", STRANGER)),
    ("name of the domain", "QUOTE_DOMAIN_MISMATCH", domain("name", "USD Coin")),
    ("version of the domain", "QUOTE_DOMAIN_MISMATCH", domain("version", "2")),
]


@pytest.mark.parametrize(("what", "code", "change"), LIES, ids=[what for what, _, _ in LIES])
def test_a_quote_with_another_value_gets_no_signature(
    service: Service, lying: LyingService, account: LocalAccount, what: str, code: str, change: Callable[[Json], None]
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)
    lying.change = in_quotes(change)
    rpc_url = service.deployment["rpcUrl"] if what == "nonce" else None
    with Client(lying.url, account=counting, pins=service.pins, rpc_url=rpc_url) as client:
        with pytest.raises(UntrustedQuoteError) as lie:
            client.agent(agent_id).open("NVDA", usdc="50", stop="8%")
        assert lie.value.code == code
        assert str(lie.value.remedy).startswith("Do not sign this")
    assert counting.signatures == 0
    assert lying.posts == []


def test_an_amount_whose_stop_would_lose_more_than_asked_gets_no_signature(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)

    def enlarge(path: str, body: Json) -> Json:
        if "maxLossUsdc" in path:
            body["body"]["usdcAmount"] = "900"
        return body

    lying.change = enlarge
    with Client(lying.url, account=counting, pins=service.pins) as client:
        with pytest.raises(UntrustedQuoteError) as lie:
            client.agent(agent_id).open("NVDA", max_loss_usdc="8", stop="8%")
        assert lie.value.code == "QUOTE_USDC_AMOUNT_MISMATCH"
    assert counting.signatures == 0


def test_a_position_with_another_cost_and_another_stop_gets_no_signature_with_a_node(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    with Client(service.url, account=account, pins=service.pins) as client:
        position = int(client.agent(agent_id).open("NVDA", usdc="50", stop="8%")["positionId"])
    counting = CountingAccount(account)

    def enlarge(path: str, body: Json) -> Json:
        if "maxLossUsdc" in path:
            body["body"]["usdcAmount"] = "900"
        if "/positions/" in path:
            body["position"]["usdcCostBasis"] = "0"
            body["position"]["pendingRules"][0]["triggerBps"] = -1
        return body

    lying.change = enlarge
    with Client(lying.url, account=counting, pins=service.pins, rpc_url=service.deployment["rpcUrl"]) as client:
        with pytest.raises(UntrustedQuoteError) as lie:
            client.agent(agent_id).add(position, max_loss_usdc="8")
        assert lie.value.code == "QUOTE_USDC_AMOUNT_MISMATCH"
    assert counting.signatures == 0


ORDER_LIES: list[tuple[str, str, Callable[[Json], None]]] = [
    ("side", "QUOTE_SIDE_MISMATCH", message("side", 2)),
    ("token", "QUOTE_TOKEN_MISMATCH", message("token", STRANGER)),
    ("position", "QUOTE_POSITION_ID_MISMATCH", message("positionId", "3")),
    ("amount", "QUOTE_USDC_AMOUNT_MISMATCH", message("usdcAmount", "900000000")),
    ("share", "QUOTE_EXIT_BPS_MISMATCH", message("exitBps", 10_000)),
    ("exits", "QUOTE_EXITS_HASH_MISMATCH", message("exitsHash", "0x" + "11" * 32)),
    ("slippage", "QUOTE_MAX_SLIPPAGE_BPS_MISMATCH", message("maxSlippageBps", 5_000)),
    ("condition", "QUOTE_CONDITION_MISMATCH", message("condition", 2)),
    ("price", "QUOTE_PRICE_MISMATCH", message("price", "99900000000")),
    ("trail", "QUOTE_TRAIL_BPS_MISMATCH", message("trailBps", 1)),
    ("start", "QUOTE_VALID_AFTER_MISMATCH", message("validAfter", "4102444800")),
    ("end", "QUOTE_VALID_UNTIL_MISMATCH", message("validUntil", "4102444800")),
    ("parts", "QUOTE_PARTS_MISMATCH", message("parts", 100)),
    ("interval", "QUOTE_INTERVAL_MISMATCH", message("interval", "60")),
    ("key", "QUOTE_KEY_MISMATCH", message("key", "7")),
    ("agent", "QUOTE_AGENT_ID_MISMATCH", message("agentId", "999")),
    ("nonce", "QUOTE_NONCE_MISMATCH", message("nonce", "7")),
    ("deadline", "QUOTE_DEADLINE_MISMATCH", message("deadline", "4102444800")),
    ("contract", "QUOTE_CONTRACT_MISMATCH", domain("verifyingContract", STRANGER)),
    ("name of the domain", "QUOTE_DOMAIN_MISMATCH", domain("name", "Service TradeRouter")),
]


@pytest.mark.parametrize(("what", "code", "change"), ORDER_LIES, ids=[what for what, _, _ in ORDER_LIES])
def test_an_order_with_another_value_gets_no_signature(
    service: Service, lying: LyingService, account: LocalAccount, what: str, code: str, change: Callable[[Json], None]
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)
    lying.change = in_quotes(change)
    rpc_url = service.deployment["rpcUrl"] if what == "nonce" else None
    with Client(lying.url, account=counting, pins=service.pins, rpc_url=rpc_url) as client:
        with pytest.raises(UntrustedQuoteError) as lie:
            client.agent(agent_id).orders.limit("NVDA", usdc="50", at="100", stop="8%")
        assert lie.value.code == code
    assert counting.signatures == 0
    assert lying.posts == []


def test_a_cancellation_of_another_order_gets_no_signature(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)
    with Client(lying.url, account=counting, pins=service.pins) as client:
        orders = client.agent(agent_id).orders
        first = orders.limit("NVDA", usdc="50", at="100", stop="8%")
        second = orders.limit("NVDA", usdc="50", at="90", stop="8%")
        lying.change = in_quotes(message("orderId", first["orderId"]))
        with pytest.raises(UntrustedQuoteError) as lie:
            orders.cancel(second["orderId"])
    assert lie.value.code == "QUOTE_ORDER_ID_MISMATCH"
    assert counting.signatures == 2


def test_a_sale_of_another_position_gets_no_signature(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)

    def rename(path: str, body: Json) -> Json:
        for position in body.get("positions", []) if path.endswith("/positions") else []:
            position["symbol"] = "AAPL"
        return body

    with Client(lying.url, account=counting, pins=service.pins) as client:
        agent = client.agent(agent_id)
        agent.open("NVDA", usdc="50", stop="8%")
        lying.change = rename
        with pytest.raises(UntrustedQuoteError) as lie:
            agent.orders.trailing_stop("AAPL", trail="5%")
    assert lie.value.code == "QUOTE_TOKEN_MISMATCH"
    assert counting.signatures == 1


def test_pins_that_the_chain_contradicts_get_no_signature(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)
    pins = Pins(chain_id=1, trade_router=service.pins.trade_router)
    with (
        Client(service.url, account=counting, pins=pins, rpc_url=service.deployment["rpcUrl"]) as client,
        pytest.raises(UntrustedQuoteError) as lie,
    ):
        client.agent(agent_id).open("NVDA", usdc="50", stop="8%")
    assert lie.value.code == "CHAIN_ID_NOT_CONFIRMED"
    assert counting.signatures == 0


def test_a_node_that_is_a_day_behind_leaves_deadlines_by_the_clock_of_this_machine(
    service: Service, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    node = LyingService(service.deployment["rpcUrl"])

    def lag(_: str, body: Json) -> Json:
        block = body.get("result")
        if isinstance(block, dict) and "timestamp" in block:
            block["timestamp"] = hex(int(block["timestamp"], 16) - 86_400)
        return body

    node.change = lag
    with Client(service.url, account=account, pins=service.pins, rpc_url=node.url) as client:
        assert client.agent(agent_id).open("NVDA", usdc="50", stop="8%")["positionId"]
    node.stop()


def test_a_trade_whose_answers_are_lost_is_executed_once(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    lost = 0

    def lose(path: str, body: Json) -> Json | None:
        nonlocal lost
        if path.endswith("/trade-intents") and lost < 2:
            lost += 1
            return None
        return body

    lying.change = lose
    with Client(lying.url, account=account, pins=service.pins) as client:
        receipt = client.agent(agent_id).open("NVDA", usdc="50", stop="8%")
        trades = client.get(f"/agents/{agent_id}/trades")["trades"]
    assert lost == 2
    assert len(set(lying.posts)) == 1
    assert [trade["transactionHash"] for trade in trades] == [receipt["transactionHash"]]


def test_an_order_whose_answers_are_lost_is_placed_once(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    lying.change = lambda path, body: None if path.endswith("/orders") else body
    # Without time for a second attempt, its digest says what became of it.
    with Client(lying.url, account=account, pins=service.pins, retry_budget_seconds=0) as client:
        orders = client.agent(agent_id).orders
        placed = orders.limit("NVDA", usdc="50", at="100", stop="8%")
        lying.change = lambda path, body: None if path.endswith("/cancel") else body
        cancelled = orders.cancel(placed["orderId"])
    with Client(service.url, pins=service.pins) as client:
        [order] = client.agent(agent_id).orders.list()["orders"]
    assert len(lying.posts) == 2
    assert (placed["orderId"], placed["transactionHash"]) == (order["orderId"], order["transactionHash"])
    assert (placed["state"], cancelled["state"], order["state"]) == ("open", "cancelled", "cancelled")
    assert cancelled["orderId"] == order["orderId"]


def test_a_service_that_denies_an_order_gets_no_trade_with_another_nonce(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)

    def deny(path: str, body: Json) -> Json | tuple[int, Json]:
        if path.endswith("/orders"):
            return 400, {"error": "No.", "code": "ORDER_NOT_OPEN", "retryable": False}
        return body

    lying.change = deny
    with Client(lying.url, account=counting, pins=service.pins) as client:
        agent = client.agent(agent_id)
        with pytest.raises(RefusedError):
            agent.orders.limit("NVDA", usdc="50", at="100", stop="8%")
        with pytest.raises(UntrustedQuoteError) as refusal:
            agent.open("MSFT", usdc="50", stop="8%")
    assert refusal.value.code == "QUOTE_NONCE_MISMATCH"
    assert counting.signatures == 1


def test_a_service_that_denies_an_execution_gets_no_second_signature(
    service: Service, lying: LyingService, account: LocalAccount
) -> None:
    agent_id = service.register(account)
    counting = CountingAccount(account)

    def deny(path: str, body: Json) -> Json | tuple[int, Json]:
        if path.endswith("/trade-intents"):
            return 400, {"error": "No.", "code": "SLIPPAGE_EXCEEDED", "retryable": False}
        return body

    with Client(lying.url, account=counting, pins=service.pins) as client:
        agent = client.agent(agent_id)
        agent.open("AAPL", usdc="20", stop="8%")
        lying.change = deny
        with pytest.raises(RefusedError):
            agent.open("NVDA", usdc="50", stop="8%")
        with pytest.raises(UntrustedQuoteError) as refusal:
            agent.open("MSFT", usdc="50", stop="8%")
    assert refusal.value.code == "QUOTE_NONCE_MISMATCH"
    assert counting.signatures == 2


@pytest.mark.parametrize(
    "change",
    [
        {"asset": STRANGER},
        {"amount": "1000001"},
        {"network": "eip155:1"},
        {"scheme": "upto"},
        {"maxTimeoutSeconds": 86_400},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_payer_pays_only_within_its_terms(
    service: Service, lying: LyingService, account: LocalAccount, change: Json
) -> None:
    payer_account = CountingAccount(service.payer.account)  # type: ignore[arg-type]
    payer = Payer(payer_account, service.payer.chain_id, service.payer.asset, max_amount=1_000_000)

    def lie(path: str, body: Json) -> Json:
        if "x402" in body and body["x402"].get("requirements"):
            body["x402"]["requirements"].update(change)
        for offered in body.get("accepts", []):
            offered.update(change)
        return body

    lying.change = lie
    with Client(lying.url, account=account, pins=service.pins) as client, pytest.raises(UntrustedQuoteError) as refusal:
        client.register(name="cheated", metadata_uri="https://agents.example/c.json", payer=payer)
    assert refusal.value.code == "PAYMENT_NOT_ALLOWED"
    assert payer_account.signatures == 0
