"""Compares a quote with the request, field by field, before anything is signed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .deadlines import Clocks, Judged, judge_deadline
from .errors import QuoteMismatch, UntrustedQuoteError
from .typed_data import Domain, TypedData, digest_of, typed_data_of

_DIGITS = re.compile(r"0|[1-9][0-9]{0,77}")


@dataclass(frozen=True)
class Expectation:
    """What a quote must say. `message` has every field but nonce and deadline."""

    domain: Domain
    primary_type: str
    message: dict[str, Any]
    signer: str
    nonce: int | None
    """The nonce that the chain has; None if it is not read."""
    deadline: str | None
    """The deadline of the request; None if the service may suggest one within the bounds."""
    now: int
    """The newest block's time if a node is read, else this machine's; Unix seconds."""
    max_deadline_seconds: int
    body: dict[str, Any]
    """The body to post, without nonce, deadline and signature."""


@dataclass(frozen=True)
class Verified:
    typed_data: TypedData
    """Built by the client itself."""
    digest: str
    nonce: int
    deadline: str
    clocks: Judged
    """What to know of the clocks."""


def verify_quote(quote: dict[str, Any], expected: Expectation) -> Verified:
    """Raises an UntrustedQuoteError that names each field of the quote that differs from the request."""
    given = _record(quote.get("typedData"))
    message = _record(given.get("message"))
    mismatches: list[tuple[str, QuoteMismatch]] = []

    def differs(subject: str, name: str, wanted: Any, found: Any) -> None:
        mismatches.append((f"QUOTE_{subject}_MISMATCH", QuoteMismatch(name, wanted, found)))

    def same(subject: str, name: str, wanted: Any, found: Any) -> None:
        if _canonical(wanted) != _canonical(found):
            differs(subject, name, wanted, found)

    wanted = typed_data_of(expected.domain, expected.primary_type, expected.message)
    domain = _record(given.get("domain"))
    codes = {"chainId": "CHAIN_ID", "verifyingContract": "CONTRACT"}
    for name, value in wanted["domain"].items():
        same(codes.get(name, "DOMAIN"), f"domain.{name}", value, domain.get(name))
    for name in domain.keys() - wanted["domain"].keys():
        differs("DOMAIN", f"domain.{name}", None, domain[name])
    same("PRIMARY_TYPE", "primaryType", expected.primary_type, given.get("primaryType"))
    same("TYPES", "types", wanted["types"], given.get("types"))
    for name, value in expected.message.items():
        same(_subject(name), f"message.{name}", value, message.get(name))
    for name in message.keys() - expected.message.keys() - {"nonce", "deadline"}:
        differs("FIELDS", f"message.{name}", None, message[name])

    nonce = _digits(message.get("nonce"))
    same(
        "NONCE",
        "message.nonce",
        str(quote.get("nonce")) if expected.nonce is None else str(expected.nonce),
        nonce,
    )
    deadline = _digits(message.get("deadline"))
    judged = Judged()
    if expected.deadline is not None:
        same("DEADLINE", "message.deadline", expected.deadline, deadline)
    else:
        # Only a node knows the nonce.
        is_from_node = expected.nonce is not None
        clocks = Clocks(expected.now, is_from_node, quote.get("serverTime"), expected.max_deadline_seconds)
        judged = judge_deadline(deadline, expected.primary_type, clocks)
        if judged.expected is not None:
            differs("DEADLINE", "message.deadline", judged.expected, message.get("deadline"))
    if "signer" in quote:
        same("SIGNER", "signer", expected.signer, quote["signer"])
    body = _record(quote.get("body"))
    for name, value in {**expected.body, "deadline": deadline}.items():
        same("BODY", f"body.{name}", value, body.get(name))
    if "nonce" in body:
        same("NONCE", "body.nonce", nonce, body["nonce"])
    _raise(mismatches, judged.remedy)
    assert nonce is not None and deadline is not None

    complete = {**expected.message, "nonce": nonce, "deadline": deadline}
    typed_data = typed_data_of(expected.domain, expected.primary_type, complete)
    digest = digest_of(typed_data)
    same("DIGEST", "digest", digest, quote.get("digest"))
    _raise(mismatches)
    return Verified(typed_data, digest, int(nonce), deadline, judged)


def _raise(mismatches: list[tuple[str, QuoteMismatch]], late_remedy: str | None = None) -> None:
    if mismatches:
        code = mismatches[0][0]
        remedy = late_remedy if code == "QUOTE_DEADLINE_MISMATCH" else None
        raise UntrustedQuoteError(code, [mismatch for _, mismatch in mismatches], remedy)


def _subject(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda match: "_" + match[0], name).upper()


def _digits(value: Any) -> str | None:
    """Returns the digits of a whole number as typed data has it; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**256:
        return str(value)
    return value if isinstance(value, str) and _DIGITS.fullmatch(value) and int(value) < 2**256 else None


def _canonical(value: Any) -> str:
    """Returns a text that is equal for equal values: hex in lower case, keys in order."""
    return json.dumps(_lowered(value), sort_keys=True)


def _lowered(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower() if re.fullmatch(r"0x[0-9a-fA-F]*", value) else value
    if isinstance(value, dict):
        return {name: _lowered(inner) for name, inner in value.items()}
    return [_lowered(inner) for inner in value] if isinstance(value, list | tuple) else value


def _record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
