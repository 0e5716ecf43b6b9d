"""Follows the stream at a URL with a library of Python, and prints each event that the library hands out."""

import json
import sys

library, url = sys.argv[1:]
last_id: str | None = None


def show(event: str, id: str | None, data: str) -> None:
    global last_id
    last_id = id or last_id
    print(json.dumps([event, data]), flush=True)


while library == "httpx-sse":
    import httpx
    from httpx_sse import connect_sse

    with httpx.Client() as client, connect_sse(client, "GET", url, params={"after": last_id} if last_id else None) as source:
        for event in source.iter_sse():
            show(event.event, event.id, event.data)
while library == "sseclient-py":
    import requests
    from sseclient import SSEClient

    response = requests.get(url, params={"after": last_id} if last_id else None, stream=True)
    for event in SSEClient(response).events():
        show(event.event, event.id, event.data)
if library == "requests-sse":
    from requests_sse import EventSource

    with EventSource(url) as source:
        for event in source:
            show(event.type, event.last_event_id, event.data)
