"""Requests to the service: one attempt, reads with retries, and signed messages until their outcome is known."""

from __future__ import annotations

import random
import re
import time
from typing import Any
from urllib.parse import quote, urlencode

from .effects import Core, Pause, Request, Response
from .errors import (
    AgentTradingError,
    NetworkError,
    NotFoundError,
    PaymentError,
    Submission,
    UnknownOutcomeError,
    error_of_response,
)
from .payment import Payer

_FIRST_BACKOFF_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 5.0
_NOT_ACCEPTED = {
    "RATE_LIMITED",
    "GAS_BUDGET_EXHAUSTED",
    "GAS_PRICE_TOO_HIGH",
    "EXECUTOR_BUSY",
    "EXECUTOR_PAUSED",
    "EXECUTOR_OUT_OF_FUNDS",
    "SUBMISSION_FAILED",
    "TOO_MANY_REVERTS",
}
"""After these errors the service has not accepted the message; after any other failure it may have."""


class Retry:
    """Waits between attempts: as long as the service says, or longer each time, within a budget."""

    def __init__(self, budget_seconds: float) -> None:
        self._until = time.monotonic() + budget_seconds
        self._backoff = _FIRST_BACKOFF_SECONDS

    def wait(self, seconds: float | None = None) -> Core[bool]:
        """Waits before the next attempt. Returns False, without waiting, if that would exceed the budget."""
        pause = seconds if seconds is not None else self._backoff * (0.5 + random.random() / 2)
        self._backoff = min(2 * self._backoff, _MAX_BACKOFF_SECONDS)
        if time.monotonic() + pause >= self._until:
            return False
        yield Pause(pause)
        return True


class Transport:
    def __init__(self, base_url: str, retry_budget_seconds: float) -> None:
        self.origin = base_url.rstrip("/")
        self.retry_budget_seconds = retry_budget_seconds
        self._seen_block = 0
        """The newest block that a response about an agent has shown: no server must return older state."""

    def once(
        self, path: str, *, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None
    ) -> Core[Any]:
        """Sends one request, without retries. Returns the JSON of a success; raises an AgentTradingError otherwise."""
        is_of_agents = path.startswith("/agents/")
        seen = {"min-block": str(self._seen_block)} if is_of_agents and self._seen_block else {}
        response: Response = yield Request(method, self.origin + path, body, {**seen, **(headers or {})})
        if not 200 <= response.status < 300:
            error = error_of_response(response.status, response.headers, response.body)
            if error.code != "MIN_BLOCK_AHEAD" or not self._seen_block:
                raise error
            self._seen_block = 0  # the chain was restarted, or lost blocks; the service did nothing else
            return (yield from self.once(path, method=method, body=body, headers=headers))
        shown = response.headers.get("x-as-of-block", "")
        if is_of_agents and shown.isdigit():
            self._seen_block = max(self._seen_block, int(shown))
        if not isinstance(response.body, dict):  # a body that was cut off says nothing about what was done
            raise NetworkError(
                "NETWORK_ERROR", f"{method} {self.origin}{path}: the response is no JSON object.", retryable=True
            )
        return response.body

    def get(self, path: str, **query: Any) -> Core[Any]:
        """Reads, and retries what may succeed later until the budget is spent."""
        retry = Retry(self.retry_budget_seconds)
        while True:
            try:
                return (yield from self.once(path + query_of(query)))
            except AgentTradingError as error:
                again = error.retryable and error.code != "NOT_READY"
                if not again or not (yield from retry.wait(error.retry_after_seconds)):
                    raise

    def submit(self, submission: Submission, payer: Payer | None = None) -> Core[dict[str, Any]]:
        """
        Posts a signed message until its outcome is known. Only the identical body is posted again, which the service
        executes at most once, and a payment is signed at most once. Raises UnknownOutcomeError if the outcome is still
        open when the budget is spent.
        """
        retry = Retry(self.retry_budget_seconds)
        headers: dict[str, str] | None = None
        may_be_executed = False
        while True:
            try:
                receipt: dict[str, Any] = yield from self.once(
                    submission.path, method=submission.method, body=submission.body, headers=headers
                )
                return receipt
            except AgentTradingError as error:
                if isinstance(error, PaymentError) and payer and headers is None:
                    headers = yield from payer.pay(error.details)
                    continue
                may_be_executed = may_be_executed or _is_open(error)
                if error.retryable and (yield from retry.wait(error.retry_after_seconds)):
                    continue
                if not may_be_executed:
                    raise
                state, found = yield from self._look_up(submission)
                if state == "executed" and isinstance(found, dict):
                    return found
                if state == "refused" and isinstance(found, AgentTradingError):
                    raise found from error
                # The service refused the message itself, and has no trace of an earlier post.
                if state == "absent" and not error.retryable:
                    raise
                if state == "pending" and (yield from retry.wait(1)):
                    continue
                raise UnknownOutcomeError(submission) from error

    def state_of(self, digest: str) -> Core[str | None]:
        """Returns what the service says of a message; None if it does not know it."""
        try:
            intent = yield from self.get(f"/intents/{digest}")
        except NotFoundError:
            return None
        return str(intent.get("state"))

    def _look_up(self, submission: Submission) -> Core[tuple[str, dict[str, Any] | AgentTradingError | None]]:
        """Reads what became of a message by its digest. Those of owners and about webhooks have no record."""
        if submission.kind in ("owner", "webhook"):
            return "unknown", None
        try:
            intent = yield from self.get(f"/intents/{submission.digest}")
        except NotFoundError:
            return "absent", None
        except AgentTradingError:
            return "unknown", None
        state = intent.get("state")
        if state in ("mined", "final"):
            ids = ("agentId", "positionId", "transactionHash", "blockNumber")
            names = (*ids, "fill", "realizedPnlUsdc", "pendingRules")
            return "executed", {**{name: intent[name] for name in names if name in intent}, **_order_of(submission)}
        if state in ("rejected", "reverted", "dropped"):
            return "refused", error_of_response(400, {}, intent.get("refusal"))
        return "pending", None


def _order_of(submission: Submission) -> dict[str, str]:
    """Returns what the receipt of an order or of its cancellation has besides."""
    cancelled = re.search(r"/orders/(0x[0-9a-f]{64})/cancel$", submission.path)
    if cancelled:
        return {"orderId": cancelled[1], "state": "cancelled"}
    return {"orderId": submission.digest, "state": "open"} if submission.path.endswith("/orders") else {}


def _is_open(error: AgentTradingError) -> bool:
    return isinstance(error, NetworkError) or ((error.status or 0) >= 500 and error.code not in _NOT_ACCEPTED)


def query_of(values: dict[str, Any]) -> str:
    given = {name: _text(value) for name, value in values.items() if value is not None}
    return "?" + urlencode(given, quote_via=quote) if given else ""


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
