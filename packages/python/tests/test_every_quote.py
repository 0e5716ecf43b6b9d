"""Whatever a service answers to any request for a quote, the client signs only what was asked for."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from eth_account import Account as Keys

from agent_trading_service import (
    AgentTradingError,
    Client,
    ExitRule,
    Payer,
    Pins,
    UntrustedQuoteError,
    ValidationError,
    messages,
)
from agent_trading_service.typed_data import SIGNING_TYPES, Domain, TypedData, contract_of, digest_of, typed_data_of

Json = dict[str, Any]
SIGNER, OWNER, PAYER = (Keys.from_key(bytes([index]) * 32) for index in (1, 2, 3))
STRANGER = "0x00000000000000000000000000000000000000B2"
VAULT, NVDA, AAPL, USDC, ROUTER, REGISTRY, CONTROLS, BOOK = (f"0x{index:040}" for index in range(1, 9))
PINS = Pins(31337, ROUTER, REGISTRY, CONTROLS, BOOK, [VAULT], {"NVDA": NVDA, "AAPL": AAPL})
CONTRACTS = {"TradeRouter": ROUTER, "AgentRegistry": REGISTRY, "OwnerControls": CONTROLS, "OrderBook": BOOK}
ORDER_ID = "0x" + "ab" * 32
NOW = int(time.time())
LATE = NOW + 86_400


class Signer:
    """Signs and remembers what it signed."""

    def __init__(self, account: Any) -> None:
        self.address = account.address
        self.account = account
        self.signed: list[TypedData] = []

    def sign_typed_data(self, *, full_message: TypedData) -> Any:
        self.signed.append(full_message)
        return self.account.sign_typed_data(full_message=full_message)


PAYING = Payer(Signer(PAYER), 31337, USDC, max_amount=1_000_000)
CALLS: dict[str, Callable[[Client], Any]] = {
    "open": lambda client: client.agent(7).open("NVDA", usdc="50", stop="8%", take="15%"),
    "open by loss": lambda client: client.agent(7).open("NVDA", max_loss_usdc="4", stop="8%"),
    "add": lambda client: client.agent("7").add("3", usdc="12.5", max_slippage="2%", min_token_out=5),
    "add by loss": lambda client: client.agent(7).add(3, max_loss_usdc="8", max_usdc="30"),
    "reduce": lambda client: client.agent(7).reduce(3, "50%"),
    "close": lambda client: client.agent(7).close(3, deadline=NOW + 60),
    "ladder": lambda client: client.agent(7).set_ladder(3, exits=[ExitRule(-300, 5_000), ExitRule(-900)]),
    "limit": lambda client: client.agent(7).orders.limit("NVDA", usdc="50", at="120.5", stop="8%", until=LATE),
    "breakout": lambda client: client.agent(7).orders.breakout(3, usdc="50", at=130, until=LATE),
    "stop": lambda client: client.agent(7).orders.stop("NVDA", at="100", share="50%"),
    "take profit": lambda client: client.agent(7).orders.take_profit(3, at="100", key=7),
    "trailing stop": lambda client: client.agent(7).orders.trailing_stop(3, trail="5%", activate_at=130),
    "twap": lambda client: client.agent(7).orders.twap("AAPL", usdc=100, parts=10, every=900, stop="8%", until=LATE),
    "time exit": lambda client: client.agent(7).orders.time_exit(3, after=NOW + 600),
    "cancel order": lambda client: client.agent(7).orders.cancel(ORDER_ID),
    "mandate": lambda client: client.owner(7, OWNER).set_mandate(max_trade_usdc="30", allowed_tokens=["NVDA", AAPL]),
    "stopped": lambda client: client.owner(7, OWNER).set_mandate("stopped", valid_until=NOW + 600),
    "stop buying": lambda client: client.owner(7, OWNER).stop(),
    "close all": lambda client: client.owner(7, OWNER).stop(sell=True, other_agent_ids=[8]),
    "void": lambda client: client.owner(7, OWNER).cancel(9),
    "transfer": lambda client: client.owner(7, OWNER).transfer(AAPL),
    "accept": lambda client: client.owner(7, OWNER).accept_transfer(AAPL),
    "signer": lambda client: client.owner(7, OWNER).set_signer(AAPL),
    "first loss": lambda client: client.owner(7, OWNER).lock_first_loss(70),
    "link": lambda client: client.owner(7, OWNER).link_erc8004(42),
    "register": lambda client: client.register(name="first", vault=VAULT, payer=PAYING),
    "register for an owner": lambda client: client.register(
        name="first", vault=VAULT, metadata_uri="https://a.example", owner=OWNER, erc8004_agent_id=5, payer=PAYING
    ),
}


REQUIREMENTS = {
    "scheme": "exact",
    "network": "eip155:31337",
    "asset": USDC,
    "payTo": VAULT,
    "amount": "1000000",
    "maxTimeoutSeconds": 300,
    "extra": {"name": "USD Coin", "version": "2"},
}


def quoted(primary_type: str, fields: Json, body: Json) -> Json:
    contract = contract_of(primary_type)
    domain = Domain(f"Service {contract}", "1", 31337, CONTRACTS[contract])
    message = {**fields, "nonce": "4", "deadline": body["deadline"]}
    typed_data = typed_data_of(domain, primary_type, message)
    return {"typedData": typed_data, "digest": digest_of(typed_data), "nonce": "4", "body": body}


class World:
    """A service that quotes honestly, and changes its quotes as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.change: Callable[[Json], Any] = lambda quote: quote
        self.honest: Json = {}
        self.held: Json = {"usdcCostBasis": "50000000", "pendingRules": [{"triggerBps": -800, "exitBps": 10_000}]}
        self.sized = "40"
        self.posts: list[str] = []
        self.signer, self.owner = Signer(SIGNER), Signer(OWNER)
        prepare = messages.prepare

        def remember(session: Any, message: messages.Message) -> Any:
            self._asked = message
            return prepare(session, message)

        monkeypatch.setattr(messages, "prepare", remember)
        monkeypatch.setitem(globals(), "OWNER", self.owner)
        monkeypatch.setitem(globals(), "PAYING", Payer(Signer(PAYER), 31337, USDC, max_amount=1_000_000))

        self._client = Client("http://service", account=self.signer, pins=PINS, retry_budget_seconds=0)
        self._client._http = httpx.Client(transport=httpx.MockTransport(self._respond))

    def call(self, name: str) -> Any:
        self._client._session.nonces._records.clear()  # as if each call were the first
        return CALLS[name](self._client)

    def signed(self) -> list[TypedData]:
        paid: Any = PAYING.account
        return [*self.signer.signed, *self.owner.signed, *paid.signed]

    def _respond(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.method != "GET":
            self.posts.append(path)
            return httpx.Response(201, json={"agentId": "7", "transactionHash": ORDER_ID})
        if path.endswith("/quote"):
            self.honest = self._quote(path, dict(parse_qsl(request.url.query.decode())))
            return httpx.Response(200, text=json.dumps(self.change(copy.deepcopy(self.honest))))
        position = {"positionId": "3", "symbol": "NVDA", **copy.deepcopy(self.held)}
        answer = {"position": position, "positions": [position], "agent": {"vault": VAULT, "owner": OWNER.address}}
        return httpx.Response(200, json=answer)

    def _quote(self, path: str, query: Json) -> Json:
        deadline = query.get("deadline", str(NOW + 300))
        if path == "/agents/register/quote":
            terms = {**query, "linkERC8004": query["linkERC8004"] == "true"}
            owner = terms.pop("owner", None)
            body = {**terms, **({"owner": owner} if owner else {}), "deadline": deadline}
            own = quoted("SelfRegister", terms, body)
            return {
                **own,
                "signerNonce": own["nonce"],
                "ownerConsent": {**quoted("OwnAgent", terms, body), "owner": owner} if owner else None,
                "x402": {"enabled": True, "requirements": REQUIREMENTS},
                "registrationFee": {"displayUsd": "1", "assetSymbol": "USDC"},
            }
        if "maxLossUsdc" in query:
            return {"body": {"usdcAmount": self.sized}}
        asked = self._asked
        signer = SIGNER if asked.kind == "intent" else OWNER
        return {
            **quoted(asked.primary_type, asked.fields, {**asked.body, "deadline": deadline}),
            "signer": signer.address,
            "checks": [],
        }


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.mark.parametrize("name", CALLS)
def test_an_honest_quote_is_signed_and_posted(world: World, name: str) -> None:
    world.call(name)
    consent = world.honest.get("ownerConsent")
    expected = {quote["digest"] for quote in (world.honest, consent) if quote}
    assert {digest_of(typed_data) for typed_data in world.signed()} == expected
    assert len(world.posts) == 1


def other(value: Any) -> Any:
    """Returns another value that the same field could have."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return value[:-1] if value else [STRANGER]
    if value.startswith("0x"):
        return STRANGER if len(value) == 42 else "0x" + "11" * 32
    return str(int(value) + 1) if value.isdigit() else value + "x"


def lies_about(typed_data: TypedData, *, of_message: bool = True) -> Iterator[tuple[str, Callable[[TypedData], Any]]]:
    """Yields every field with a change of it."""
    for part in ("message", "domain"):
        for name in typed_data[part]:
            # Without a node, only the service knows the nonce, and it suggests the deadline.
            if name not in ("nonce", "deadline"):
                yield (
                    f"{part}.{name}",
                    lambda given, part=part, name=name: given[part].update(  # type: ignore[misc]
                        {name: other(given[part][name])}
                    ),
                )
        yield f"one more of {part}", lambda given, part=part: given[part].update(salt="0x" + "11" * 32)  # type: ignore[misc]
    yield "deadline", lambda given: given["message"].update(deadline=str(NOW + 100_000))
    for primary_type in SIGNING_TYPES.keys() - {typed_data["primaryType"]}:
        yield primary_type, lambda given, to=primary_type: given.update(primaryType=to)  # type: ignore[misc]
    own = typed_data["primaryType"]
    yield "types", lambda given: given["types"][own].append({"name": "salt", "type": "bytes32"})
    yield "order of types", lambda given: given["types"][own].reverse()


@pytest.mark.parametrize("name", CALLS)
def test_no_field_of_a_quote_can_be_another(world: World, name: str) -> None:
    world.call(name)
    counted, signable = len(world.signed()), ["ownerConsent"] if "for an" in name else []
    for holder in [None, *signable]:
        honest = world.honest[holder] if holder else world.honest
        for what, change in lies_about(honest["typedData"]):

            def lie(quote: Json, holder: str | None = holder, change: Callable[[TypedData], Any] = change) -> Json:
                lying = quote[holder] if holder else quote
                if "typedData" not in lying:
                    return quote
                change(lying["typedData"])
                body = quote["body"]
                for field in body.keys() & lying["typedData"]["message"].keys():
                    if isinstance(body[field], type(lying["typedData"]["message"][field])) and field != "usdcAmount":
                        body[field] = lying["typedData"]["message"][field]
                try:
                    lying["digest"] = digest_of(lying["typedData"])
                except Exception:
                    lying["digest"] = "0x" + "11" * 32
                return quote

            world.change = lie
            with pytest.raises(UntrustedQuoteError):
                world.call(name)
                pytest.fail(f"{name}: {what} was signed")
    assert len(world.signed()) == counted


@pytest.mark.parametrize("rule", [-1, -100, -800, -9_999])
@pytest.mark.parametrize("cost", ["0", "50000000", str(10**15)])
@pytest.mark.parametrize("amount", ["0.000001", "30", "40", "900", "9000000"])
def test_no_position_that_a_service_describes_makes_a_trade_larger_than_its_maximum(
    world: World, rule: int, cost: str, amount: str
) -> None:
    world.sized = amount
    world.held = {"usdcCostBasis": cost, "pendingRules": [{"triggerBps": rule, "exitBps": 10_000}]}
    with contextlib.suppress(UntrustedQuoteError):
        world.call("add by loss")
    assert all(int(typed_data["message"]["usdcAmount"]) <= 30_000_000 for typed_data in world.signed())


def test_a_trade_sized_by_the_loss_of_a_position_needs_a_maximum_or_a_node(world: World) -> None:
    with pytest.raises(ValidationError) as refused:
        world._client.agent(7).add(3, max_loss_usdc="8")
    assert refused.value.code == "BOUND_REQUIRED"
    assert "max_usdc" in str(refused.value)
    assert "rpc_url" in str(refused.value.remedy)
    assert world.signed() == []


JUNK: list[Any] = [None, True, False, 0, -1, 1.5, 1e300, "", "0x", "7", chr(0x667), chr(0xD800), [], {}, [[]]]
JUNK += [{"message": {}}, STRANGER, 2**300, "9" * 78]


def corrupt(value: Any, chance: random.Random) -> Any:
    """Replaces something inside a JSON value by something else."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not inner or chance.random() < 0.15:
        return copy.deepcopy(chance.choice(JUNK))
    at = chance.choice(inner)
    if isinstance(value, dict) and chance.random() < 0.1:
        del value[at]
    else:
        value[at] = corrupt(value[at], chance)
    return value


@pytest.mark.parametrize("name", CALLS)
def test_a_corrupt_quote_is_refused_by_an_error_of_this_package(world: World, name: str) -> None:
    chance = random.Random(name)
    world.call(name)
    expected = [shape(typed_data) for typed_data in world.signed()]
    for _ in range(60):
        before = len(world.signed())
        world.change = lambda quote: corrupt(quote, chance)
        with contextlib.suppress(AgentTradingError):
            world.call(name)
        signed = [shape(typed_data) for typed_data in world.signed()[before:]]
        assert all(each in expected for each in signed)


def shape(typed_data: TypedData) -> Json:
    """Returns what was asked for: everything but the nonce and the deadline."""
    asked = {name: value for name, value in typed_data["message"].items() if name not in ("nonce", "deadline")}
    return {**typed_data, "message": asked}
