"""A server in front of the service that changes its answers, or loses them, as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

Json = dict[str, Any]
Change = Callable[[str, Json], "Json | tuple[int, Json] | None"]


class LyingService:
    """`change` gets path and body of an answer; it returns the body to send, or it and a status, or None to hang up."""

    def __init__(self, target: str) -> None:
        self.change: Change = lambda path, body: body
        self.posts: list[str] = []
        lying = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._forward(None)

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                lying.posts.append(content.decode())
                self._forward(content)

            do_PUT = do_POST

            def _forward(self, content: bytes | None) -> None:
                names = ("content-type", "accept", "payment-signature")
                headers = {name: self.headers[name] for name in names if self.headers[name]}
                response = httpx.request(self.command, target + self.path, content=content, headers=headers, timeout=30)
                changed = lying.change(self.path, response.json())
                if changed is None:
                    self.close_connection = True
                    return
                status, body = changed if isinstance(changed, tuple) else (response.status_code, changed)
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
