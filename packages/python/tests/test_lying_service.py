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
            if name != "usdcAmount":
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
        assert ("rpc_url" in str(lie.value.remedy)) == (what == "deadline")
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
