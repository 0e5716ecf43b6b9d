"""A caller's mistake is a ValidationError that names the argument: before anything is read, signed or sent."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy
import pytest
from eth_account import Account as Keys

from agent_trading_service import (
    AgentTradingError,
    AsyncClient,
    Client,
    ExitRule,
    NetworkError,
    Payer,
    Pins,
    Submission,
    ValidationError,
    frame,
    rows,
)

from .conftest import free_port
from .stub_service import StubService

NOWHERE = f"http://127.0.0.1:{free_port()}"
ACCOUNT = Keys.create()
USDC = "0x00000000000000000000000000000000000000c1"
SUBMISSION = Submission("intent", "POST", "/agents/7/trade-intents", {}, "0x00")
VALID = {
    "account": ACCOUNT,
    "agent_id": 7,
    "after": 2_000_000_000,
    "asset": USDC,
    "at": "120",
    "base_url": NOWHERE,
    "body": {},
    "chain_id": 1,
    "erc8004_agent_id": 1,
    "every": 60,
    "max_amount": 1,
    "name": "first",
    "new_owner": USDC,
    "order_id": "0x" + "11" * 32,
    "parts": 2,
    "path": "/",
    "position_id": 3,
    "prices": {"NVDA": "120"},
    "share": "50%",
    "shares": 1,
    "signer": USDC,
    "new_signer": USDC,
    "submission": SUBMISSION,
    "symbol": "NVDA",
    "table": [],
    "target": "NVDA",
    "trail": "5%",
    "until_nonce": 5,
    "url": "https://example.com",
    "usdc": 50,
}
"""A valid value for each argument that a method needs; reads take text."""
COMPANIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("open", "usdc"): {"stop": "8%"},
    ("open", "max_loss_usdc"): {"stop": "8%"},
    ("open", "max_usdc"): {"stop": "8%", "max_loss_usdc": 5},
    ("add", "max_usdc"): {"max_loss_usdc": 5},
}
"""What an argument needs beside it."""
WRONG: list[Any] = [
    object(),
    1.5,
    numpy.int64(7),
    numpy.float64(7),
    Decimal("NaN"),
    True,
    b"0x00",
    {"triggerBps": -800, "exitBps": 10_000},
    {"a": object()},
    [object()],
    [{"triggerType": "StopLoss", "triggerBps": -800, "exitBps": 10_000, "fired": False}],
    [numpy.int64(7)],
    lambda value: value,
    "\ud83d",
    ACCOUNT.key,
]


def objects(created: type[Client] | type[AsyncClient]) -> dict[str, Any]:
    client = created(NOWHERE, account=ACCOUNT, retry_budget_seconds=0)
    agent = client.agent(7)
    owner = client.owner(7)
    return {
        "client": client,
        "agent": agent,
        "owner": owner,
        "orders": agent.orders,
        "webhooks": agent.webhooks,
        "owner's webhooks": owner.webhooks,
    }


CALLS: list[tuple[str, Callable[..., Any]]] = [
    *(
        (f"{created.__name__} {holder} {name}", method)
        for created in (Client, AsyncClient)
        for holder, given in objects(created).items()
        for name, method in inspect.getmembers(given, inspect.ismethod)
        if not name.startswith("_")
    ),
    *((each.__name__, each) for each in (Client, AsyncClient, Payer, Pins, rows, frame)),
]


def keywords(call: Callable[..., Any]) -> list[str]:
    """Returns the names of what can be passed, those of `**schedule` too."""
    names = []
    for parameter in inspect.signature(call).parameters.values():
        is_open = parameter.kind is inspect.Parameter.VAR_KEYWORD
        names += ["until", "key", "deadline", "note", "unknown"] if is_open else [parameter.name]
    return names


def needed(call: Callable[..., Any]) -> dict[str, Any]:
    """Returns a valid value for each argument that has to be passed."""
    given = {}
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            choices = re.fullmatch(r"Literal\[['\"](\w+)['\"].*", str(parameter.annotation))
            given[name] = choices[1] if choices else VALID.get(name, "x")
    return given


ARGUMENTS = [
    pytest.param(call, name, id=f"{label} {name}", marks=[pytest.mark.long] if label.startswith("AsyncClient ") else [])
    for label, call in CALLS
    for name in keywords(call)
]
"""The async client has the same methods, so CI tries those of the other one."""


def outcome(call: Callable[..., Any], given: dict[str, Any]) -> AgentTradingError | None:
    """Returns the error of a call that waits for its outcome; errors of any other class are raised."""

    async def awaited(made: Any) -> None:
        if inspect.isasyncgen(made):
            await anext(made)
        else:
            await made

    try:
        made = call(**given)
        if inspect.isawaitable(made) or inspect.isasyncgen(made):
            asyncio.run(awaited(made))
        elif isinstance(made, Iterator):
            next(made)
    except AgentTradingError as error:
        return error
    return None


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_every_argument_of_a_wrong_type_is_named_by_every_method(call: Callable[..., Any], name: str) -> None:
    valid = {**needed(call), **COMPANIONS.get((call.__name__, name), {})}
    refused = 0
    for wrong in WRONG:
        error = outcome(call, {**valid, name: wrong})
        if isinstance(error, ValidationError):
            assert error.args[0].startswith(name), wrong
            assert "0x00" not in str(error)
            refused += 1
        else:
            # It is of a type that fits: only the service is missing.
            assert error is None or isinstance(error, NetworkError), wrong
    assert refused >= 2


def test_the_mistakes_that_callers_made_are_named() -> None:
    with Client(NOWHERE, account=ACCOUNT, retry_budget_seconds=0) as client:
        agent = client.agent(7)
        rule = {"triggerType": "StopLoss", "triggerBps": -800, "exitBps": 10_000, "fired": False}
        mistakes: dict[str, Callable[[], Any]] = {
            "payer is an eth_account.signers.local.LocalAccount; pass Payer(account, chain_id, asset, ": lambda: (
                client.register(name="a", payer=ACCOUNT)
            ),
            "name is an int; pass text.": lambda: client.register(name=5),  # type: ignore[arg-type]
            "exits[0] is a dict; pass ExitRule(trigger_bps, exit_bps).": lambda: (
                agent.open("NVDA", usdc=5, exits=[rule])  # type: ignore[list-item]
            ),
            "exits[1] is a dict; pass ExitRule(": lambda: (
                agent.orders.limit("NVDA", usdc=5, at=1, exits=[ExitRule(-800), rule])  # type: ignore[list-item]
            ),
            "account is a str; pass an eth_account account, or": lambda: (
                Client(NOWHERE, account="0x" + ACCOUNT.key.hex())
            ),
            "position_id is a numpy.int64; pass an int or its digits.": lambda: (
                agent.close(numpy.int64(3))  # type: ignore[arg-type]
            ),
            "chain_id is a numpy.int64; pass an int.": lambda: Pins(chain_id=numpy.int64(1)),  # type: ignore[arg-type]
            "tokens['NVDA'] is no such text; pass an address": lambda: Pins(tokens={"NVDA": "0x12"}),
            "asset is no such text; pass an address": lambda: Payer(ACCOUNT, 1, "USDC", 1),
            "intents[0]['exitBps'] is a numpy.int64; pass": lambda: (
                agent.what_if(intents=[{"kind": "reduce", "positionId": "3", "exitBps": numpy.int64(5)}])
            ),
            "activate_at is '1,5'; pass": lambda: agent.orders.trailing_stop(3, trail="5%", activate_at="1,5"),
            "untill is no argument; pass one of until, key, deadline, note, after.": lambda: (
                agent.orders.stop(3, at="1", untill=5)  # type: ignore[call-arg]
            ),
            "vault is empty; pass": lambda: client.register(name="a", vault=""),
            "symbols is a str; pass a list": lambda: client.events(symbols="NVDA"),
            "path is 'agents/7'; pass one that starts with '/'.": lambda: client.get("agents/7"),
            "base_url is no such text; pass a URL": lambda: Client("api.example"),
        }
        with StubService(
            lambda path, _: (200, {"position": {"symbol": "NVDA"}, "tokens": [{"symbol": "NVDA", "address": USDC}]})
        ) as stub:
            client._session.transport.origin = stub.url
            for sentence, call in mistakes.items():
                with pytest.raises(ValidationError) as refused:
                    call()
                assert str(refused.value).startswith(f"INVALID_REQUEST: {sentence}") or "activate_at" in sentence
                assert sentence in str(refused.value)


@pytest.mark.parametrize("signed", [None, 5, object()])
def test_an_account_that_returns_no_signature_is_named(signed: Any) -> None:
    class Wallet:
        address = ACCOUNT.address

        def sign_typed_data(self, *, full_message: Any) -> Any:
            return signed

    registry = {"chainId": 1, "contracts": {"AgentRegistry": USDC}}
    with (
        StubService(lambda *_: (200, registry)) as stub,
        Client(stub.url, account=Wallet()) as client,
        pytest.raises(ValidationError, match=r"account\.sign_typed_data has returned"),
    ):
        client.agent(7).webhooks.list()


PROGRAM = """
import asyncio, sys
from agent_trading_service import AsyncClient, Client, AgentTradingError
async def read(url):
    async with AsyncClient(url, retry_budget_seconds=0) as client:
        return await client.get("/")
with Client(sys.argv[1], retry_budget_seconds=0) as client:
    for call in (lambda: client.get("/"), lambda: asyncio.run(read(sys.argv[1])), lambda: next(client.events())):
        try:
            print(call())
        except AgentTradingError as error:
            print(error)
"""


def read_with(environment: dict[str, str], url: str) -> list[str]:
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "environment",
    [
        {"NO_PROXY": "localhost,127.0.0.1,::1"},
        {"NO_PROXY": "[::1]:8080,fd00::/8,127.0.0.0/8", "HTTP_PROXY": NOWHERE},
        {"NO_PROXY": "::1,[fe80::1%eth0],127.0.0.1:80", "ALL_PROXY": "socks5://user:secret@127.0.0.1:9"},
        {"NO_PROXY": "*", "HTTP_PROXY": "not a url", "ALL_PROXY": "socks4://127.0.0.1:9"},
        {"ALL_PROXY": "socks4://127.0.0.1:9"},
        {"HTTPS_PROXY": "socks5h://127.0.0.1:9"},
        {"HTTP_PROXY": "http://[::1"},
    ],
)
def test_no_proxy_of_the_environment_stops_a_client_that_does_not_need_it(environment: dict[str, str]) -> None:
    event = 'id: 1\nevent: trade\ndata: {"a": 1}\n\n'
    with StubService(lambda path, _: (200, event if path.startswith("/events") else {"name": "ats"})) as stub:
        first, second, third = read_with(environment, stub.url)
    assert first == second == "{'name': 'ats'}"
    assert third.startswith("Event(")


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h", "socks"])
def test_a_dead_proxy_is_named_without_its_password(scheme: str) -> None:
    dead = f"127.0.0.1:{free_port()}"
    lines = read_with({"ALL_PROXY": f"{scheme}://user:secret@{dead}"}, "http://service.example")
    assert len(lines) == 3
    for line in lines:
        assert f"{dead} could not be reached" in line
        assert "Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY" in line
        assert "secret" not in line


def test_a_proxy_is_used() -> None:
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = f'{{"asked": "{self.path}"}}'.encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    first, *_ = read_with({"HTTP_PROXY": f"127.0.0.1:{server.server_port}"}, "http://service.example")
    server.shutdown()
    assert first == "{'asked': 'http://service.example/'}"
