"""A stand-in for the package requests: what the examples use of it, over the host's fetch."""

import json as _json
from urllib.parse import urlencode

import host


class RequestException(IOError):
    pass


class ConnectionError(RequestException):
    pass


class Timeout(RequestException):
    pass


class Response:
    def __init__(self, status, text):
        self.status_code = status
        self.ok = status < 400
        self.text = text

    def json(self):
        return _json.loads(self.text)


class Session:
    def get(self, url, *, params=None, timeout=None):
        query = {name: value for name, value in (params or {}).items() if value is not None}
        return self._send("GET", url + ("?" + urlencode(query) if query else ""), None, timeout)

    def post(self, url, *, json, timeout=None):
        return self._send("POST", url, _json.dumps(json), timeout)

    def _send(self, method, url, body, timeout):
        headers = {"Accept": "*/*", **({"Content-Type": "application/json"} if body is not None else {})}
        request = {"method": method, "url": url, "headers": headers, "timeout": timeout}
        answer = _json.loads(host.send(_json.dumps({**request, **({"body": body} if body is not None else {})})))
        failure = answer.get("failure")
        if failure is not None:
            raise (Timeout if failure == "timeout" else ConnectionError)(f"{method} {url}: {failure}")
        return Response(answer["status"], answer["body"])


def get(url, **options):
    return Session().get(url, **options)


def post(url, **options):
    return Session().post(url, **options)
