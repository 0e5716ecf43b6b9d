"""Every error of this package, by kind."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any


class ClockWarning(UserWarning):
    """This machine's clock and the service's differ; what only reduces risk is not refused for that."""


class AgentTradingError(Exception):
    """The root of every error that this package raises."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str | None = None,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
        request_id: str | None = None,
        details: Any = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """Stable, in SCREAMING_SNAKE_CASE."""
        self.remedy = remedy
        """What to do next."""
        self.retryable = retryable
        """Whether the identical request may succeed later."""
        self.retry_after_seconds = retry_after_seconds
        self.request_id = request_id
        """Of the service's response; quote it when you report a problem."""
        self.details = details
        """Facts such as the limit, the given and the expected value."""
        self.status = status
        """The HTTP status, if the service responded."""

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.code}: {super().__str__()}{remedy}"


class ValidationError(AgentTradingError):
    """The request is malformed; nothing was sent to the chain."""


class NotFoundError(AgentTradingError):
    """The service has no such agent, vault, position, intent or path."""


class RefusedError(AgentTradingError):
    """A rule of the contracts, the mandate or the service refuses it; nothing was executed."""


class PaymentError(AgentTradingError):
    """A payment is required, or was not accepted."""


class RateLimitedError(AgentTradingError):
    """A rate limit or a gas budget is exhausted, for longer than the client waits."""


class UnavailableError(AgentTradingError):
    """The service or its chain cannot do it at the moment; nothing was executed."""


class NetworkError(AgentTradingError):
    """The service could not be reached, or its response was cut off."""


@dataclass(frozen=True)
class QuoteMismatch:
    """One value of a quote that differs from the request."""

    field: str
    expected: Any
    given: Any


class UntrustedQuoteError(AgentTradingError):
    """A quote, a contract or a payment differs from the request or the pins. Nothing was signed."""

    def __init__(self, code: str, mismatches: list[QuoteMismatch], remedy: str | None = None) -> None:
        first = mismatches[0]
        super().__init__(
            code,
            f"{first.field} is {first.given}; expected {first.expected}. Nothing was signed.",
            remedy=remedy
            or "Do not sign this. Check the base URL and the pins; if both are right, do not trust the service.",
            details={"mismatches": mismatches},
        )
        self.mismatches = mismatches


@dataclass(frozen=True)
class Submission:
    """A signed message with its way to the service. It holds no key and can be stored and posted again."""

    kind: str
    method: str
    path: str
    body: dict[str, Any]
    digest: str
    """The EIP-712 digest, by which the service executes the message at most once."""
    nonce: tuple[str, int] | None = field(default=None)
    """Whose nonce the message takes, and which."""


class UnknownOutcomeError(AgentTradingError):
    """The message was posted and may have been executed. `client.resume(error.submission)` finds out."""

    def __init__(self, submission: Submission) -> None:
        super().__init__(
            "UNKNOWN_OUTCOME",
            f"The message {submission.digest} was posted and its outcome is not known yet.",
            remedy="Call client.resume(error.submission) until it returns or raises another error; do not sign again.",
            retryable=True,
            details={"digest": submission.digest},
        )
        self.submission = submission


_VALIDATION_CODES = {"INVALID_REQUEST", "INVALID_AMOUNT", "UNKNOWN_SYMBOL", "BODY_TOO_LARGE"}


def error_of_response(status: int, headers: Mapping[str, str], body: Any) -> AgentTradingError:
    """Returns the error of a response that is not a success."""
    given: dict[str, Any] = body if isinstance(body, dict) else {}
    has_code = isinstance(given.get("code"), str)
    code = given["code"] if has_code else f"HTTP_{status}"
    message = given["error"] if isinstance(given.get("error"), str) else f"The service responded with status {status}."
    # A gateway's own response has no code; what stands behind it may be back in a moment.
    retryable = given.get("retryable", status == 429 or (not has_code and status >= 500))
    seconds = given.get("retryAfterSeconds")
    return _class_of(status, code)(
        code,
        message,
        status=status,
        remedy=given.get("remedy"),
        retryable=bool(retryable),
        retry_after_seconds=float(seconds) if isinstance(seconds, int | float) else _retry_after(headers),
        request_id=given.get("requestId") or headers.get("x-request-id"),
        details=body if status == 402 else given.get("details"),
    )


def _class_of(status: int, code: str) -> type[AgentTradingError]:
    if status == 402:
        return PaymentError
    if status == 429:
        return RateLimitedError
    if status == 404:
        return NotFoundError
    if status >= 500:
        return UnavailableError
    return ValidationError if status in (401, 405) or code in _VALIDATION_CODES else RefusedError


def _retry_after(headers: Mapping[str, str]) -> float | None:
    given = headers.get("retry-after")
    if given is None:
        return None
    if given.isdigit():
        return float(given)
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return None
