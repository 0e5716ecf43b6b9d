"""
Remembers which nonces were used, because two messages with the same nonce are never both executed: while a posted
message may still be executed, only its nonce is signed again, so a service that denies an execution gets no second one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .effects import Core
from .errors import QuoteMismatch, UntrustedQuoteError
from .transport import Transport

CLOCK_SKEW_SECONDS = 60
"""How far this machine's clock may be from the chain's."""
_MAX_EXECUTED = 16


@dataclass
class _Record:
    next: int = 0
    open: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Messages that were posted and not seen executed: nonce and deadline by digest."""
    executed: dict[str, int] = field(default_factory=dict)
    """The last messages that were seen executed: nonce by digest."""


class Nonces:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._records: dict[str, _Record] = {}

    def assert_safe(self, holder: str, nonce: int, digest: str, now: int, *, is_from_chain: bool) -> Core[None]:
        """Raises if a message with another nonce may still be executed, or if the nonce was seen used."""
        record = self._records.setdefault(holder, _Record())
        record.open = {key: post for key, post in record.open.items() if post[1] + CLOCK_SKEW_SECONDS >= now}
        for other, (used, deadline) in record.open.items():
            if other != digest and used != nonce:
                raise _unsafe(
                    f"{used}, because {other} was posted with it",
                    nonce,
                    f"Resume that message, or wait until its deadline {deadline} (Unix seconds) has passed.",
                )
        if nonce >= record.next:
            return
        # A reorg may have taken executed messages back. Believing it is safe: the nonce can be used only once.
        undone = [key for key, used in record.executed.items() if used >= nonce]
        states = []
        for key in undone:
            states.append("rejected" if is_from_chain else (yield from self._transport.state_of(key)))
        is_undone = all(state in (None, "rejected", "reverted", "dropped") for state in states)
        if len(undone) < record.next - nonce or not is_undone:
            raise _unsafe(f"at least {record.next}", nonce)
        record.next = nonce
        for key in undone:
            del record.executed[key]

    def posted(self, holder: str, nonce: int, digest: str, deadline: int) -> None:
        self._records.setdefault(holder, _Record()).open[digest] = (nonce, deadline)

    def executed(self, holder: str, nonce: int, digest: str) -> None:
        record = self._records.setdefault(holder, _Record())
        self.used_below(holder, nonce + 1)
        record.executed[digest] = nonce
        while len(record.executed) > _MAX_EXECUTED:
            del record.executed[next(iter(record.executed))]

    def used_below(self, holder: str, nonce: int) -> None:
        record = self._records.setdefault(holder, _Record())
        record.next = max(record.next, nonce)
        record.open = {key: post for key, post in record.open.items() if post[0] >= record.next}


def _unsafe(expected: str, given: int, remedy: str | None = None) -> UntrustedQuoteError:
    mismatch = QuoteMismatch("message.nonce", expected, given)
    return UntrustedQuoteError("QUOTE_NONCE_MISMATCH", [mismatch], remedy)
