"""Reads the events of an agent with an SSE library: sse.py LIBRARY URL. Prints what it has read after a second."""

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

library, url = sys.argv[1:]
Event = tuple[str, str, str]
"""Id, type and data."""


def httpx_sse() -> Iterator[Event]:
    import httpx
    from httpx_sse import connect_sse

    with httpx.Client(timeout=30) as client, connect_sse(client, "GET", url) as source:
        for event in source.iter_sse():
            yield event.id, event.event, event.data


def sseclient_py() -> Iterator[Event]:
    import requests
    import sseclient

    response = requests.get(url, stream=True, headers={"accept": "text/event-stream"}, timeout=30)
    for event in sseclient.SSEClient(response).events():
        yield event.id, event.event, event.data


def requests_sse() -> Iterator[Event]:
    from requests_sse import EventSource

    with EventSource(url, timeout=30) as source:
        for event in source:
            yield event.last_event_id, event.type, event.data


def aiohttp_sse_client2() -> Iterator[Event]:
    from aiohttp_sse_client2.client import EventSource

    async def up_to_trades(count: int) -> list[Event]:
        read: list[Event] = []
        async with EventSource(url) as source:
            async for event in source:
                read.append((event.last_event_id, event.type, event.data))
                if len([each for each in read if each[1] == "trade"]) == count:
                    break
        return read

    yield from asyncio.run(up_to_trades(2))


read: list[Event] = []
for event in globals()[library.replace("-", "_")]():
    read.append(event)
    if len([each for each in read if each[1] == "trade"]) == 2 or len(read) == 12:
        break
trades: list[tuple[str, Any]] = [(each[0], json.loads(each[2])) for each in read if each[1] == "trade"]
assert len(trades) >= 2, read
assert all(identity and data["positionId"] for identity, data in trades), trades
empty = len([each for each in read if not each[2]])
print(f"{len(trades)} trades with ids" + (f", {empty} empty events" if empty else ""))
