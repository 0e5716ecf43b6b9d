"""One signed message: fetch its quote, compare it with the request, sign, and post until the outcome is known."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .deployment import Deployment
from .effects import Account, Core, Sign
from .errors import ClockWarning, QuoteMismatch, RefusedError, Submission, UntrustedQuoteError, ValidationError
from .nonces import Nonces
from .payment import Payer
from .quotes import Expectation, Verified, verify_quote
from .transport import Transport
from .typed_data import Domain, contract_of, nonce_contract_of

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """What the calls of one client share."""

    transport: Transport
    deployment: Deployment
    nonces: Nonces
    account: Account | None
    max_deadline_seconds: int
    on_submission: Callable[[Submission], None] | None


@dataclass(frozen=True)
class Message:
    """A message as it was asked for."""

    kind: str
    primary_type: str
    fields: Json
    """Every field but nonce and deadline."""
    path: str
    """Where it is posted; its quote is at `path`/quote, unless `quote_path` says otherwise."""
    query: Json
    body: Json
    """The body without nonce, deadline and signature."""
    method: str = "POST"
    quote_path: str | None = None
    agent_id: int | None = None
    """Whose nonce it takes; None for that of the signer."""
    signer: str | None = None
    """Who has to sign, where the quote does not say it."""
    deadline: str | None = None
    body_has_nonce: bool = True
    note: str | None = None
    """Why it trades; posted with the body and not signed."""


@dataclass(frozen=True)
class Prepared:
    """A message that was compared with its request and waits for a signature."""

    message: Message
    quote: Json
    """The service's quote. Sign `verified.typed_data`, which the client has built itself."""
    signer: str
    verified: Verified
    holder: str
    checks: list[Json] = field(default_factory=list)
    """Every rule that the router will apply; empty for messages of owners."""


def send(session: Session, message: Message | Core[Message], account: Account | None = None) -> Core[Json]:
    """Quotes, compares, checks, signs and posts a message. Returns its receipt."""
    prepared = yield from well_formed(_checked(session, message))
    signature = yield from sign(session, prepared, account)
    return (yield from submit(session, prepared, signature))


def _checked(session: Session, message: Message | Core[Message]) -> Core[Prepared]:
    """Returns a message of which every check passes."""
    built = message if isinstance(message, Message) else (yield from message)
    prepared = yield from prepare(session, built)
    failed = [check for check in prepared.checks if not check["pass"]]
    if failed:
        raise checks_failed(failed)
    return prepared


def well_formed(core: Core[T]) -> Core[T]:
    """Runs what reads responses before a signature. Raises UntrustedQuoteError if one lacks what the API documents."""
    try:
        return (yield from core)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as cause:
        given = f"malformed ({type(cause).__name__})"
        mismatch = QuoteMismatch("A response of the service", "what its OpenAPI document says", given)
        raise UntrustedQuoteError("MALFORMED_RESPONSE", [mismatch]) from cause


def prepare(session: Session, message: Message) -> Core[Prepared]:
    """Fetches the quote of a message and compares it with the request. Raises UntrustedQuoteError if they differ."""
    deployment = session.deployment
    domain = yield from deployment.domain_of(contract_of(message.primary_type))
    nonce_contract = nonce_contract_of(message.primary_type)
    query = {**message.query, "deadline": message.deadline}
    quote_path = message.quote_path or f"{message.path}/quote"
    quote: Json = yield from session.transport.get(quote_path, **query)
    signer = message.signer or str(quote.get("signer"))
    holder = message.agent_id if message.agent_id is not None else signer
    now = yield from deployment.now()
    on_chain = yield from deployment.nonce_of(nonce_contract, holder)
    verified = verify_quote(
        quote,
        Expectation(
            domain=domain,
            primary_type=message.primary_type,
            message=message.fields,
            signer=signer,
            nonce=on_chain,
            deadline=message.deadline,
            now=now,
            max_deadline_seconds=session.max_deadline_seconds,
            body=message.body,
        ),
    )
    name = holder_of((yield from deployment.domain_of(nonce_contract)), holder)
    clocks = verified.clocks
    if clocks.warning is not None:
        warnings.warn(clocks.warning, ClockWarning, stacklevel=2)
    # By a clock that is ahead, posted messages would expire too early.
    present = now - clocks.seconds_ahead
    yield from session.nonces.assert_safe(
        name, verified.nonce, verified.digest, present, is_from_chain=on_chain is not None
    )
    return Prepared(message, quote, signer, verified, name, quote.get("checks", []))


def sign(session: Session, prepared: Prepared, account: Account | None = None) -> Core[str]:
    """Signs with the account, which has to be the one that the message needs."""
    signature: str = yield Sign(account_for(account or session.account, prepared.signer), prepared.verified.typed_data)
    return signature


def submit(session: Session, prepared: Prepared, signature: str) -> Core[Json]:
    """Posts a signature and returns once the transaction is mined. Safe to call again with the same signature."""
    message, verified = prepared.message, prepared.verified
    body = {**message.body, "deadline": verified.deadline, "signature": signature}
    if message.body_has_nonce:
        body["nonce"] = str(verified.nonce)
    if message.note is not None:
        body["note"] = message.note
    submission = Submission(
        message.kind, message.method, message.path, body, verified.digest, (prepared.holder, verified.nonce)
    )
    session.nonces.posted(prepared.holder, verified.nonce, verified.digest, int(verified.deadline))
    receipt = yield from post(session, submission)
    if message.primary_type == "CancelIntents":
        router = yield from session.deployment.domain_of("TradeRouter")
        holder = holder_of(router, message.fields["agentId"])
        session.nonces.used_below(holder, int(message.fields["untilNonce"]))
    return receipt


def post(session: Session, submission: Submission, payer: Payer | None = None) -> Core[Json]:
    """Posts a signed message until its outcome is known, and remembers that its nonce is used."""
    if session.on_submission:
        session.on_submission(submission)
    receipt = yield from session.transport.submit(submission, payer)
    if submission.nonce:
        holder, nonce = submission.nonce
        session.nonces.executed(holder, nonce, submission.digest)
    return receipt


def holder_of(domain: Domain, holder: int | str) -> str:
    """Returns the name of a nonce: the same one wherever the same contract counts for the same agent or account."""
    return f"{domain.chain_id}-{domain.verifying_contract}-{holder}".lower()


def checks_failed(failed: list[Json]) -> RefusedError:
    """Returns the error of failed checks. `details` has code, rule, sentence and remedy of the first, and all."""
    first, *others = failed
    sentence = f"The check {first['rule']} fails{explained(first)}."
    more = f" {len(others)} more fail: {', '.join(check['rule'] for check in others)}." if others else ""
    remedy = (
        first.get("remedy") or "Change the request so that every check passes; the limits are in details['checks']."
    )
    return RefusedError(
        "CHECKS_FAILED",
        sentence + more,
        remedy=remedy,
        details={
            "code": first["code"],
            "rule": first["rule"],
            "sentence": sentence,
            "remedy": remedy,
            "checks": failed,
        },
    )


FIGURE_UNITS = {
    "allocationCap": "usdc",
    "dailyLoss": "usdc",
    "dailyTurnover": "usdc",
    "entrySlippage": "bps",
    "gasBudget": "gas",
    "idleAssets": "usdc",
    "mandateExposure": "usdc",
    "mandateTrade": "usdc",
    "mandateTurnover": "usdc",
    "maxDrawdown": "bps",
    "maxTradeSize": "usdc",
    "minTradeSize": "usdc",
    "noPendingRuleMet": "bps",
    "notTriggeredAlready": "bps",
    "spotPrice": "bps",
    "stopDistance": "bps",
    "twapPrice": "bps",
    "waste": "usdc",
}
"""What the figures of a rule are; those of the other rules say nothing to a person."""


def _figure(rule: str, figure: Any) -> str | None:
    """Returns a figure of a check with its unit; None if it says nothing to a person."""
    if not re.fullmatch(r"-?[0-9]+", str(figure)):
        return None
    number = int(figure)
    unit = FIGURE_UNITS.get(rule)
    if unit == "usdc":
        whole, fraction = divmod(abs(number), 1_000_000)
        digits = f"{fraction:06}"
        return f"{'-' if number < 0 else ''}{whole}.{digits[:2]}{digits[2:].rstrip('0')} USDC"
    if unit == "bps":
        whole, fraction = divmod(abs(number), 100)
        return f"{'-' if number < 0 else ''}{whole}.{fraction:02}".rstrip("0").rstrip(".") + " %"
    return f"{number} gas" if unit == "gas" else None


def explained(check: Json) -> str:
    """Says why a check fails, in the words of the TypeScript client; empty if its figures say nothing."""
    if check.get("problem"):
        return f": {check['problem']}"
    used, after, limit = (_figure(check["rule"], check.get(name)) for name in ("used", "after", "limit"))
    value = f"{after} after the trade" if after is not None else used
    if value is None:
        return ""
    return f": {value}" + (f", with a limit of {limit}" if limit is not None else "")


def account_for(account: Account | None, signer: str) -> Account:
    """Returns the account that is to sign. Raises a ValidationError if there is none, or it is another one."""
    if account is None:
        raise ValidationError(
            "NO_ACCOUNT",
            f"{signer} has to sign, and the client has no account.",
            remedy="Pass `account` to the client.",
        )
    if account.address.lower() != signer.lower():
        raise ValidationError(
            "WRONG_ACCOUNT",
            f"{signer} has to sign, but the account is {account.address}.",
            remedy="Use the agent's signer for trades and its owner for messages of owners.",
        )
    return account
