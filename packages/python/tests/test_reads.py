"""Reads by name, tables and event streams, against a server that responds as the API documents it."""

from __future__ import annotations

import asyncio
import inspect
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_trading_service import (
    AsyncClient,
    Client,
    NotFoundError,
    RateLimitedError,
    RefusedError,
    Submission,
    UnavailableError,
    ValidationError,
    frame,
    rows,
)

from .stub_service import StubService

CANDLES = {
    "t": ["1700000000", "1700003600"],
    "o": ["101.5", "102"],
    "h": ["103", "104.25"],
    "l": ["101", "101.75"],
    "c": ["102", "103.5"],
    "n": [4, 7],
}
SUBMISSION = Submission("intent", "POST", "/agents/7/trade-intents", {}, "0x" + "ab" * 32)
DOCUMENT = json.loads((Path(__file__).parents[1] / "openapi.json").read_text())


def test_every_read_of_the_api_has_a_method_in_both_clients() -> None:
    ids = [
        methods["get"]["operationId"]
        for methods in DOCUMENT["paths"].values()
        if "get" in methods and "application/json" in methods["get"]["responses"]["200"]["content"]
    ]
    assert len(ids) > 40
    for client in (Client, AsyncClient):
        names = {name.replace("_", "") for name, _ in inspect.getmembers(client)}
        assert [each for each in ids if each.lower() not in names] == []


def test_a_read_fills_the_path_and_leaves_out_what_is_not_given() -> None:
    with StubService(lambda path, _: (200, {"path": path})) as stub, Client(stub.url) as client:
        client.get_candles("BRK/B", interval="1d", from_=1_700_000_000, limit=5)
        client.list_positions(7)
        client.get_prices(symbols=["NVDA", "AAPL"])
        client.get_depth("NVDA", usdc_amount=Decimal("12.5"))
    assert stub.paths == [
        "/prices/BRK%2FB/candles?interval=1d&from=1700000000&limit=5",
        "/agents/7/positions",
        "/prices?symbols=NVDA%2CAAPL",
        "/tokens/NVDA/depth?usdcAmount=12.5",
    ]


def test_a_read_awaits_in_the_async_client_and_raises_the_error_of_the_service() -> None:
    error = {"error": "There is no agent 9.", "code": "AGENT_NOT_FOUND", "remedy": "List agents.", "requestId": "r-1"}

    async def read(url: str) -> None:
        async with AsyncClient(url) as client:
            with pytest.raises(NotFoundError) as refusal:
                await client.get_agent(9)
            raised = refusal.value
            assert (raised.code, raised.remedy, raised.request_id) == ("AGENT_NOT_FOUND", "List agents.", "r-1")
            assert not raised.retryable

    with StubService(lambda *_: (404, error)) as stub:
        asyncio.run(read(stub.url))


def test_candles_are_rows_of_exact_numbers() -> None:
    assert rows(CANDLES)[1] == {
        "time": 1_700_003_600,
        "open": 102,
        "high": Decimal("104.25"),
        "low": Decimal("101.75"),
        "close": Decimal("103.5"),
        "posts": 7,
    }
    position = {"symbol": "123", "tokenAmount": "1000000000000000001", "pnlUsdc": "-5", "exits": []}
    assert rows([position]) == [{"symbol": "123", "tokenAmount": 10**18 + 1, "pnlUsdc": -5, "exits": []}]
    assert rows({"agentId": "7", "winRateBps": None}) == [{"agentId": 7, "winRateBps": None}]
    with pytest.raises(ValidationError):
        rows("candles")  # type: ignore[arg-type]


def test_candles_are_a_frame_by_time() -> None:
    pandas: Any = pytest.importorskip("pandas")
    table = frame(CANDLES)
    assert table.index[0] == pandas.Timestamp("2023-11-14T22:13:20Z")
    assert list(table["close"]) == [102.0, 103.5]
    assert list(frame([{"symbol": "NVDA", "pnlUsdc": "-5"}])["pnlUsdc"]) == [-5]


def test_a_redirect_of_a_post_leaves_its_outcome_open() -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(302, headers={"location": "http://elsewhere/"})
        assert request.url.path == f"/intents/{SUBMISSION.digest}"
        return httpx.Response(200, json={"state": "mined", "agentId": "7", "transactionHash": "0x01"})

    with Client("http://service", retry_budget_seconds=0) as client:
        client._http = httpx.Client(transport=httpx.MockTransport(respond))
        assert client.resume(SUBMISSION) == {"agentId": "7", "transactionHash": "0x01"}


def test_a_base_url_without_a_scheme_is_refused_at_once() -> None:
    for url in ("127.0.0.1:8787", "ftp://api.example", ""):
        with pytest.raises(ValidationError, match="base_url"):
            Client(url)


STREAM = (
    'retry: 1000\nid: 5-0\nevent: position\ndata: {"id": "5-0", "blockNumber": "5"}\n\n'
    'id: 5-1\nevent: trade\ndata: {"agentId": "7"}\n\n: heartbeat\n\n'
    'id: 6-0\nevent: position\ndata: {"id": "6-0", "blockNumber": "6"}\n\n'
)


def test_a_stream_that_ends_resumes_at_its_last_position_which_is_no_event() -> None:
    seen: list[str | None] = []

    def respond(_: str, headers: Any) -> tuple[int, Any]:
        seen.append(headers.get("last-event-id"))
        return 200, STREAM

    with StubService(respond) as stub, Client(stub.url) as client:
        events = client.events(agent_id=7, symbols=["NVDA", "AAPL"])
        assert [next(events).id, next(events).id] == ["5-1", "5-1"]
    assert stub.paths[0] == "/agents/7/events?symbols=NVDA%2CAAPL"
    assert seen == [None, "6-0"]


def test_a_stream_that_the_service_refuses_raises_its_error() -> None:
    refused = {"error": "There is no agent 9.", "code": "AGENT_NOT_FOUND", "remedy": "List agents."}
    with StubService(lambda *_: (404, refused)) as stub, Client(stub.url) as client:
        with pytest.raises(NotFoundError):
            next(client.events(agent_id=9))
        assert len(stub.paths) == 1

    async def follow(url: str) -> None:
        async with AsyncClient(url) as client:
            with pytest.raises(NotFoundError):
                await anext(client.events(agent_id=9))

    with StubService(lambda *_: (404, refused)) as stub:
        asyncio.run(follow(stub.url))
        assert len(stub.paths) == 1


def test_a_stream_without_a_free_place_is_tried_again_within_the_budget() -> None:
    full = {"error": "Too many streams.", "code": "TOO_MANY_STREAMS", "retryable": True, "retryAfterSeconds": 0.01}

    def respond(*_: Any) -> tuple[int, Any]:
        return (200, STREAM) if len(stub.paths) == 3 else (503, full)

    with StubService(respond) as stub, Client(stub.url) as client:
        assert next(client.events()).type == "trade"
        assert len(stub.paths) == 3
    with StubService(lambda *_: (503, full)) as stub, Client(stub.url, retry_budget_seconds=0.005) as client:
        with pytest.raises((UnavailableError, RateLimitedError, RefusedError)) as refusal:
            next(client.events())
        assert refusal.value.code == "TOO_MANY_STREAMS"
