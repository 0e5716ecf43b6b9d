"""The clients: `Client` blocks, `AsyncClient` awaits; both run the same core."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Generic, TypeVar

import httpx

from . import messages, registration
from .amounts import Integer, digits
from .arguments import Url, checks_arguments, json_of
from .calls import AgentCalls, OwnerCalls
from .deployment import Deployment, Pins
from .effects import Account, Core, network_error, run, run_async
from .errors import AgentTradingError, NetworkError, Submission, ValidationError, error_of_response
from .events import Event, EventParser
from .generated.reads import AsyncReads, Reads
from .messages import Session
from .nonces import Nonces
from .payment import Payer
from .proxies import origin_of, proxy_of
from .transport import Retry, Transport, query_of

Json = dict[str, Any]
R = TypeVar("R")
Query = str | int | Decimal | None

_MAX_SILENCE_SECONDS = 45.0
"""The service sends a heartbeat every 15 seconds; a connection that is silent for longer is dead."""


class _ClientCalls(Generic[R]):
    """
    A client of one deployment. Pin everything you know: without pins, the service's first answer is believed.

    `rpc_url` is a node of your choice: the client then confirms pins, nonces and deadlines on chain. `on_submission` is
    called with each signed message before it is posted; store it, and `resume` it after a crash.
    """

    def __init__(
        self,
        base_url: Url,
        *,
        account: Account | None = None,
        rpc_url: Url | None = None,
        pins: Pins | None = None,
        max_deadline_seconds: int = 900,
        request_timeout_seconds: float = 20,
        retry_budget_seconds: float = 60,
        on_submission: Callable[[Submission], None] | None = None,
    ) -> None:
        transport = Transport(base_url, retry_budget_seconds)
        deployment = Deployment(transport, pins or Pins(), rpc_url)
        nonces = Nonces(transport)
        self._session = Session(transport, deployment, nonces, account, max_deadline_seconds, on_submission)
        self._timeout = request_timeout_seconds
        self._connect({url: proxy for url in (base_url, rpc_url) if url and (proxy := proxy_of(url))})

    def _connect(self, proxies: Mapping[str, str]) -> None:
        raise NotImplementedError

    def _run(self, turn: object, core: Core[Json]) -> R:
        raise NotImplementedError

    def get(self, path: str, **query: Query) -> R:
        """
        Reads any path of the API, such as `client.get("/agents/7/risk-state")`. Amounts stay strings. Each read also
        has a method with types: `client.get_risk_state(7)`.
        """
        if not path.startswith("/"):
            raise ValidationError("INVALID_REQUEST", f"path is {path!r}; pass one that starts with '/'.")
        return self._run(None, self._session.transport.get(path, **query))

    def register(
        self,
        *,
        name: str,
        metadata_uri: str = registration.NO_METADATA,
        vault: str = "genesis",
        owner: Account | None = None,
        erc8004_agent_id: Integer | None = None,
        payer: Payer | None = None,
        deadline: Integer | None = None,
    ) -> R:
        """Registers an agent, paying the fee with `payer` where there is one. Returns a receipt with `agentId`."""
        core = registration.register(
            self._session,
            vault=vault,
            name=name,
            metadata_uri=metadata_uri,
            owner=owner,
            erc8004_agent_id=erc8004_agent_id,
            payer=payer,
            deadline=deadline,
        )
        return self._run("register", core)

    def resume(self, submission: Submission, payer: Payer | None = None) -> R:
        """Posts a signed message again and returns its outcome. It is never executed twice."""
        return self._run(None, messages.post(self._session, submission, payer))

    def verify_signature(self, body: Mapping[str, Any]) -> R:
        """Asks the service what is wrong with a signature: the body of `POST /signing/verify`. Sends nothing on."""
        return self._run(
            None, self._session.transport.once("/signing/verify", method="POST", body=json_of(body, "body"))
        )

    def _stream(self, path: str, parser: EventParser) -> dict[str, Any]:
        """Returns the arguments of the request that opens a stream behind the parser's last event."""
        headers = {"accept": "text/event-stream", **({"last-event-id": parser.last_id} if parser.last_id else {})}
        timeout = httpx.Timeout(self._timeout, read=_MAX_SILENCE_SECONDS)
        return {"method": "GET", "url": self._session.transport.origin + path, "headers": headers, "timeout": timeout}


@checks_arguments
class Client(Reads, _ClientCalls[Json]):
    __doc__ = _ClientCalls.__doc__

    def _connect(self, proxies: Mapping[str, str]) -> None:
        mounts = {origin_of(url): httpx.HTTPTransport(proxy=proxy) for url, proxy in proxies.items()}
        self._http = httpx.Client(timeout=self._timeout, transport=httpx.HTTPTransport(), mounts=mounts)
        self._turns: defaultdict[object, threading.Lock] = defaultdict(threading.Lock)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def agent(self, agent_id: Integer) -> Agent:
        """Returns what an agent's signer does."""
        return Agent(self, agent_id)

    def owner(self, agent_id: Integer, account: Account | None = None) -> Owner:
        """Returns what an agent's owner does, signed by `account` or the client's account."""
        return Owner(self, agent_id, account)

    def events(
        self,
        *,
        agent_id: Integer | None = None,
        vault: str | None = None,
        symbols: Sequence[str] | None = None,
        last_event_id: str | None = None,
    ) -> Iterator[Event]:
        """Iterates over events, and resumes by id after a dropped connection."""
        path = _events_path(agent_id, vault, symbols)
        parser = EventParser(last_event_id)
        retry = Retry(self._session.transport.retry_budget_seconds)
        while True:
            error: AgentTradingError = _lost()
            try:
                with self._http.stream(**self._stream(path, parser)) as response:
                    if response.status_code != 200:
                        response.read()
                        raise error_of_response(response.status_code, response.headers, _json(response))
                    retry = Retry(self._session.transport.retry_budget_seconds)
                    for line in response.iter_lines():
                        yield from parser.feed(line)
            except httpx.HTTPError as cause:
                error = network_error("GET", self._session.transport.origin + path, cause)
            except AgentTradingError as refusal:
                error = refusal
            if not error.retryable or not run(retry.wait(error.retry_after_seconds), self._http):
                raise error
            parser = EventParser(parser.last_id)

    def _read(self, path: str, query: Json) -> Any:
        return self.get(path, **query)

    def _run(self, turn: object, core: Core[Json]) -> Json:
        """Runs messages of one agent one after the other: each takes the next nonce."""
        if turn is None:
            return run(core, self._http)
        with self._turns[turn]:
            return run(core, self._http)


@checks_arguments
class Agent(AgentCalls[Json]):
    """What an agent's signer does. Each call quotes, compares, checks, signs and posts, and returns the receipt."""

    def __init__(self, client: Client, agent_id: Integer) -> None:
        super().__init__(client._session, agent_id)
        self._client = client

    def events(self, *, last_event_id: str | None = None) -> Iterator[Event]:
        """Iterates over the agent's events."""
        return self._client.events(agent_id=self.agent_id, last_event_id=last_event_id)

    def _run(self, turn: object, core: Core[Json]) -> Json:
        return self._client._run(turn, core)


@checks_arguments
class Owner(OwnerCalls[Json]):
    """What an agent's owner signs. Nobody pays gas; the service relays."""

    def __init__(self, client: Client, agent_id: Integer, account: Account | None) -> None:
        super().__init__(client._session, agent_id, account)
        self._client = client

    def _run(self, turn: object, core: Core[Json]) -> Json:
        return self._client._run(turn, core)


@checks_arguments
class AsyncClient(AsyncReads, _ClientCalls[Awaitable[Json]]):
    __doc__ = _ClientCalls.__doc__

    def _connect(self, proxies: Mapping[str, str]) -> None:
        mounts = {origin_of(url): httpx.AsyncHTTPTransport(proxy=proxy) for url, proxy in proxies.items()}
        self._http = httpx.AsyncClient(timeout=self._timeout, transport=httpx.AsyncHTTPTransport(), mounts=mounts)
        self._turns: defaultdict[object, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    def agent(self, agent_id: Integer) -> AsyncAgent:
        """Returns what an agent's signer does."""
        return AsyncAgent(self, agent_id)

    def owner(self, agent_id: Integer, account: Account | None = None) -> AsyncOwner:
        """Returns what an agent's owner does, signed by `account` or the client's account."""
        return AsyncOwner(self, agent_id, account)

    async def events(
        self,
        *,
        agent_id: Integer | None = None,
        vault: str | None = None,
        symbols: Sequence[str] | None = None,
        last_event_id: str | None = None,
    ) -> AsyncIterator[Event]:
        """Iterates over events, and resumes by id after a dropped connection."""
        path = _events_path(agent_id, vault, symbols)
        parser = EventParser(last_event_id)
        retry = Retry(self._session.transport.retry_budget_seconds)
        while True:
            error: AgentTradingError = _lost()
            try:
                async with self._http.stream(**self._stream(path, parser)) as response:
                    if response.status_code != 200:
                        await response.aread()
                        raise error_of_response(response.status_code, response.headers, _json(response))
                    retry = Retry(self._session.transport.retry_budget_seconds)
                    async for line in response.aiter_lines():
                        for event in parser.feed(line):
                            yield event
            except httpx.HTTPError as cause:
                error = network_error("GET", self._session.transport.origin + path, cause)
            except AgentTradingError as refusal:
                error = refusal
            if not error.retryable or not await run_async(retry.wait(error.retry_after_seconds), self._http):
                raise error
            parser = EventParser(parser.last_id)

    async def _read(self, path: str, query: Json) -> Any:
        return await self.get(path, **query)

    async def _run(self, turn: object, core: Core[Json]) -> Json:
        """Runs messages of one agent one after the other: each takes the next nonce."""
        if turn is None:
            return await run_async(core, self._http)
        async with self._turns[turn]:
            return await run_async(core, self._http)


@checks_arguments
class AsyncAgent(AgentCalls[Awaitable[Json]]):
    """What an agent's signer does. Each call quotes, compares, checks, signs and posts, and returns the receipt."""

    def __init__(self, client: AsyncClient, agent_id: Integer) -> None:
        super().__init__(client._session, agent_id)
        self._client = client

    def events(self, *, last_event_id: str | None = None) -> AsyncIterator[Event]:
        """Iterates over the agent's events."""
        return self._client.events(agent_id=self.agent_id, last_event_id=last_event_id)

    def _run(self, turn: object, core: Core[Json]) -> Awaitable[Json]:
        return self._client._run(turn, core)


@checks_arguments
class AsyncOwner(OwnerCalls[Awaitable[Json]]):
    """What an agent's owner signs. Nobody pays gas; the service relays."""

    def __init__(self, client: AsyncClient, agent_id: Integer, account: Account | None) -> None:
        super().__init__(client._session, agent_id, account)
        self._client = client

    def _run(self, turn: object, core: Core[Json]) -> Awaitable[Json]:
        return self._client._run(turn, core)


def _events_path(agent_id: Integer | None, vault: str | None, symbols: Sequence[str] | None) -> str:
    prices = None if symbols is None else ",".join(symbols)
    if agent_id is not None:
        return f"/agents/{digits(agent_id, 'agent_id')}/events" + query_of({"symbols": prices})
    return "/events" + query_of({"vault": vault, "symbols": prices})


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _lost() -> NetworkError:
    return NetworkError("NETWORK_ERROR", "The connection to the event stream was lost.", retryable=True)
