"""Judges the deadline that a service suggests by our own clock and, for what reduces risk, by the service's."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from .nonces import CLOCK_SKEW_SECONDS

_MAX_CLOCK_DIFFERENCE_SECONDS = 86_400
"""By how much two clocks may differ for what reduces risk: a zone that was taken for UTC, a night asleep."""
_REDUCES_RISK = {"ReducePosition", "StopBuying", "CloseAll"}
"""The messages that can only sell or stop an agent."""


@dataclass(frozen=True)
class Clocks:
    """What a deadline is judged by. Times are Unix seconds."""

    now: int
    """The newest block's time if a node is read, else this machine's."""
    is_from_node: bool
    server_time: Any
    """The service's clock as the quote has it. It may be anything."""
    max_deadline_seconds: int


@dataclass(frozen=True)
class Judged:
    expected: str | None = None
    """The bounds, if the deadline is refused."""
    remedy: str | None = None
    warning: str | None = None
    """What to know of the clocks before it is signed."""
    seconds_ahead: int = 0
    """By how much this machine's clock is ahead, where the service's is believed."""


def judge_deadline(deadline: str | None, primary_type: str, clocks: Clocks) -> Judged:
    """
    Judges a deadline. It has to be near by our own clock. If that is a machine's, and the service's differs from it by
    up to a day, a message that reduces risk only has to be near by the service's clock: one that lies gets a signature
    for what was asked for, valid for up to a day longer.
    """
    now = clocks.now

    def is_between(start: int, end: int) -> bool:
        return deadline is not None and start <= int(deadline) <= end

    start, end = now - CLOCK_SKEW_SECONDS, max(now, int(time.time())) + clocks.max_deadline_seconds
    if is_between(start, end):
        return Judged()
    expected = f"{start} to {end} (Unix seconds)"
    service = _seconds(clocks.server_time)
    ahead = 0 if service is None else now - service
    if service is None or abs(ahead) <= CLOCK_SKEW_SECONDS:
        return Judged(expected)
    if not is_between(service - CLOCK_SKEW_SECONDS, service + clocks.max_deadline_seconds):
        return Judged(expected)
    if clocks.is_from_node:
        return Judged(expected, _node_remedy(now, service))
    differ = (
        f"This machine's clock says {_text(now)}, the service's {_text(service)}: this machine is {_difference(ahead)}."
    )
    if primary_type not in _REDUCES_RISK or abs(ahead) > _MAX_CLOCK_DIFFERENCE_SECONDS:
        return Judged(expected, f"{differ} Do not sign this before you know which is right. {_CURE}")
    valid = f"The message only reduces risk, so it is not refused; it is valid until {_text(int(str(deadline)))}."
    return Judged(warning=f"{differ} {valid} {_CURE}", seconds_ahead=max(0, ahead))


_CURE = "Correct this machine's clock, or pass a node as `rpc_url`: the time of its newest block then counts."


def _node_remedy(now: int, service: int) -> str:
    return (
        f"Do not sign this. The newest block of the node is from {_text(now)}, this machine's clock says "
        f"{_text(int(time.time()))}, and the service's {_text(service)}: the service is {_difference(service - now)} "
        "of the block. Pass a node that has caught up; if it has, do not trust the service."
    )


def _difference(ahead: int) -> str:
    minutes = abs(ahead) // 60
    return f"{minutes // 60} h {minutes % 60} min {'ahead' if ahead > 0 else 'behind'}"


def _text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def _seconds(given: Any) -> int | None:
    """Returns Unix seconds that a date can hold; None for anything else."""
    return int(given) if re.fullmatch(r"[0-9]{1,11}", str(given)) else None
