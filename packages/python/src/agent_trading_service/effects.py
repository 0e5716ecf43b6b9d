"""What the client does to the outside, as values: one core of generators serves the sync and the async client."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import httpx

from .errors import NetworkError, ValidationError
from .proxies import PROXY_REMEDY, proxy_of, shown
from .typed_data import TypedData

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One HTTP request, sent once."""

    method: str
    url: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: Any
    """The parsed JSON; None if it is none."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Sign:
    account: Account
    typed_data: TypedData


Effect = Request | Pause | Sign
Core = Generator[Effect, Any, T]
"""A computation that yields effects and is sent their results: `Response`, None or a signature."""


@runtime_checkable
class Account(Protocol):
    """An eth_account account, or an object with an address that signs typed data. Its key stays with it."""

    @property
    def address(self) -> str: ...

    def sign_typed_data(self, *, full_message: TypedData) -> Any:
        """Returns a signature as bytes or hex, or an object with `signature`; an async client also awaits it."""


def run(core: Core[T], http: httpx.Client) -> T:
    """Runs a computation with blocking input and output."""
    result: Any = None
    error: NetworkError | None = None
    while True:
        try:
            effect = core.throw(error) if error else core.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        result, error = None, None
        if isinstance(effect, Request):
            try:
                result = _response(effect, http.send(_built(http, effect)))
            except httpx.HTTPError as cause:
                error = network_error(effect.method, effect.url, cause)
            except NetworkError as redirect:
                error = redirect
        elif isinstance(effect, Pause):
            time.sleep(effect.seconds)
        else:
            result = signature_of(effect.account.sign_typed_data(full_message=effect.typed_data))


async def run_async(core: Core[T], http: httpx.AsyncClient) -> T:
    """Runs a computation on the event loop."""
    result: Any = None
    error: NetworkError | None = None
    while True:
        try:
            effect = core.throw(error) if error else core.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        result, error = None, None
        if isinstance(effect, Request):
            try:
                result = _response(effect, await http.send(_built(http, effect)))
            except httpx.HTTPError as cause:
                error = network_error(effect.method, effect.url, cause)
            except NetworkError as redirect:
                error = redirect
        elif isinstance(effect, Pause):
            await asyncio.sleep(effect.seconds)
        else:
            signed = effect.account.sign_typed_data(full_message=effect.typed_data)
            result = signature_of(await signed if inspect.isawaitable(signed) else signed)


def signature_of(signed: Any) -> str:
    """Returns a signature as hex, from whatever an account returns."""
    raw = getattr(signed, "signature", signed)
    if isinstance(raw, str):
        return "0x" + raw.removeprefix("0x")
    if isinstance(raw, bytes | bytearray | memoryview):
        return "0x" + bytes(raw).hex()
    raise ValidationError(
        "INVALID_REQUEST",
        f"account.sign_typed_data has returned a {type(signed).__name__}; it has to return a signature: bytes or hex.",
        remedy="An account that signs elsewhere and has to be awaited needs AsyncClient.",
    )


def _built(http: httpx.Client | httpx.AsyncClient, effect: Request) -> httpx.Request:
    headers = {"accept": "application/json", **effect.headers}
    content = None
    if effect.body is not None:
        headers["content-type"] = "application/json"
        content = json.dumps(effect.body)
    return http.build_request(effect.method, effect.url, content=content, headers=headers)


def _response(effect: Request, response: httpx.Response) -> Response:
    if 300 <= response.status_code < 400:
        raise NetworkError(
            "NETWORK_ERROR",
            f"{effect.method} {effect.url}: the service redirects, which the client does not follow.",
            retryable=True,
        )
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    return Response(response.status_code, response.headers, body)


def network_error(method: str, url: str, cause: httpx.HTTPError) -> NetworkError:
    """Returns the error of a request without a response. It names the proxy if there is one."""
    why = "did not respond in time" if isinstance(cause, httpx.TimeoutException) else "could not be reached"
    proxy = proxy_of(url)
    who, remedy = "the service", "Check the base URL and the connection, then try again."
    if proxy is not None:
        is_dead = isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout)
        who = f"the proxy {shown(proxy)}" if is_dead else f"the service, behind the proxy {shown(proxy)},"
        remedy = PROXY_REMEDY
    return NetworkError("NETWORK_ERROR", f"{method} {url}: {who} {why}.", remedy=remedy, retryable=True)
