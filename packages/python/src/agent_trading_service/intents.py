"""The messages of an agent's signer and of its owner, as `Message` values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eth_utils.address import is_address, to_checksum_address

from .amounts import Integer, Percent, Usdc, bps, digits, usdc_text, usdc_units
from .deployment import Deployment
from .effects import Core
from .errors import QuoteMismatch, UntrustedQuoteError, ValidationError
from .messages import Message, Session
from .typed_data import ExitRule, hash_exits

Json = dict[str, Any]
CLOSE_BPS = 10_000
MAX_STOP_BPS = 9_999
DEFAULT_SLIPPAGE_BPS = 100
_MAX_TRIGGER_BPS = 10**9
MODES = {"trade": 0, "reduceOnly": 1, "stopped": 2}


def ladder_of(stop: Percent | None, take: Percent | None, exits: Sequence[ExitRule] | None) -> list[ExitRule]:
    """Returns the ladder of `exits`, or of one stop-loss and one take-profit that sell everything."""
    rules = list(exits or [])
    if rules and (stop is not None or take is not None):
        raise ValidationError("INVALID_REQUEST", "exits and stop or take both say where to sell; pass one of them.")
    if stop is not None:
        rules.append(ExitRule(-bps(stop, "stop", most=MAX_STOP_BPS)))
    if take is not None:
        rules.append(ExitRule(bps(take, "take", most=1_000_000)))
    if not rules:
        raise ValidationError(
            "INVALID_REQUEST",
            "The position would have no exit.",
            remedy='Pass stop="8%", take="15%" or exits=[ExitRule(-800)].',
        )
    for rule in rules:
        _assert_rule(rule)
    return rules


def _assert_rule(rule: ExitRule) -> None:
    for name, value in (("trigger_bps", rule.trigger_bps), ("exit_bps", rule.exit_bps)):
        if not isinstance(value, int) or isinstance(value, bool) or value == 0 or abs(value) > _MAX_TRIGGER_BPS:
            raise ValidationError("INVALID_REQUEST", f"{name} is {value!r}; pass whole basis points, not 0.")
    bps(rule.exit_bps, "exit_bps")


def open_position(
    session: Session,
    agent_id: int,
    symbol: str,
    *,
    usdc: Usdc | None,
    max_loss_usdc: Usdc | None,
    max_usdc: Usdc | None,
    exits: list[ExitRule],
    max_slippage: Percent,
    min_token_out: Integer,
    deadline: Integer | None,
) -> Core[Message]:
    query = {"symbol": symbol, "exits": exits_query(exits)}
    terms = _purchase_terms(max_slippage, min_token_out)
    if max_loss_usdc is None:
        units = _given_units(usdc, max_usdc)
    else:
        max_loss = _max_loss_units(usdc, max_loss_usdc)
        quoted = yield from _sized(session, agent_id, "trade-intents", {**query, **terms}, max_loss)
        units = _assert_loss(quoted, 0, exits, max_loss, max_usdc)
    vault = yield from session.deployment.vault_of(str(agent_id))
    symbol, token = yield from session.deployment.token_of(symbol, agent_id)
    body = {"usdcAmount": usdc_text(units), **terms}
    return intent(
        agent_id,
        "OpenPosition",
        "trade-intents",
        fields={"vault": vault, "token": token, "usdcAmount": str(units), **terms, "exitsHash": hash_exits(exits)},
        body={"symbol": symbol, **body, "exits": exits_body(exits)},
        query={**query, "symbol": symbol, **body},
        deadline=deadline,
    )


def add_to_position(
    session: Session,
    agent_id: int,
    position_id: Integer,
    *,
    usdc: Usdc | None,
    max_loss_usdc: Usdc | None,
    max_usdc: Usdc | None,
    max_slippage: Percent,
    min_token_out: Integer,
    deadline: Integer | None,
) -> Core[Message]:
    position = {"positionId": digits(position_id, "position_id")}
    terms = _purchase_terms(max_slippage, min_token_out)
    if max_loss_usdc is None:
        units = _given_units(usdc, max_usdc)
    else:
        max_loss = _max_loss_units(usdc, max_loss_usdc)
        quoted = yield from _sized(session, agent_id, "add-intents", {**position, **terms}, max_loss)
        cost, pending = yield from _held(session, agent_id, position["positionId"], max_usdc)
        units = _assert_loss(quoted, cost, pending, max_loss, max_usdc)
    body = {**position, "usdcAmount": usdc_text(units), **terms}
    return intent(
        agent_id,
        "AddToPosition",
        "add-intents",
        fields={**position, "usdcAmount": str(units), **terms},
        body=body,
        query=body,
        deadline=deadline,
    )


def reduce_position(agent_id: int, position_id: Integer, share: Percent, deadline: Integer | None) -> Message:
    fields = {"positionId": digits(position_id, "position_id"), "exitBps": bps(share, "share")}
    return intent(
        agent_id,
        "ReducePosition",
        "reduce-intents",
        fields=fields,
        body=fields,
        query=fields,
        deadline=deadline,
    )


def set_ladder(agent_id: int, position_id: Integer, exits: list[ExitRule], deadline: Integer | None) -> Message:
    position = {"positionId": digits(position_id, "position_id")}
    return intent(
        agent_id,
        "UpdateExitLadder",
        "exit-ladder-intents",
        fields={**position, "exitsHash": hash_exits(exits)},
        body={**position, "exits": exits_body(exits)},
        query={**position, "exits": exits_query(exits)},
        deadline=deadline,
    )


def mandate(
    deployment: Deployment,
    agent_id: int,
    *,
    mode: str,
    limits: dict[str, Usdc | None],
    allowed_tokens: Sequence[str] | None,
    valid_until: Integer | None,
    deadline: Integer | None,
) -> Core[Message]:
    if mode not in MODES:
        raise ValidationError("INVALID_REQUEST", f"mode is {mode!r}; pass one of {', '.join(MODES)}.")
    tokens: list[str] = []
    for token in allowed_tokens or ():
        tokens.append(
            str(to_checksum_address(token))
            if is_address(token)
            else (yield from deployment.token_of(token, agent_id))[1]
        )
    units = {name: 0 if limit is None else usdc_units(limit, _snake(name)) for name, limit in limits.items()}
    common: Json = {"mode": mode, **{name: usdc_text(value) for name, value in units.items() if value}}
    if valid_until is not None:
        common["validUntil"] = digits(valid_until, "valid_until")
    return _owner(
        agent_id,
        "SetMandate",
        "mandate",
        fields={
            "agentId": str(agent_id),
            "mode": MODES[mode],
            **{name: str(value) for name, value in units.items()},
            "allowedTokens": tokens,
            "validUntil": common.get("validUntil", "0"),
        },
        body={**common, **({"allowedTokens": tokens} if allowed_tokens is not None else {})},
        query={**common, **({"allowedTokens": ",".join(tokens)} if allowed_tokens is not None else {})},
        method="PUT",
        deadline=deadline,
    )


def stop(agent_id: int, *, sell: bool, other_agent_ids: Sequence[Integer], deadline: Integer | None) -> Message:
    others = [digits(other, "other_agent_ids") for other in other_agent_ids]
    action = "flatten" if sell else "reduceOnly"
    return _owner(
        agent_id,
        "CloseAll" if sell else "StopBuying",
        "stop",
        fields={"agentIds": [str(agent_id), *others]},
        body={"action": action, **({"otherAgentIds": others} if others else {})},
        query={"action": action, **({"otherAgentIds": ",".join(others)} if others else {})},
        deadline=deadline,
    )


def cancel(agent_id: int, until_nonce: Integer, deadline: Integer | None) -> Message:
    return _same(agent_id, "CancelIntents", "cancel", {"untilNonce": digits(until_nonce, "until_nonce")}, deadline)


def transfer(agent_id: int, new_owner: str, deadline: Integer | None) -> Message:
    return _same(agent_id, "OfferOwnership", "owner", {"newOwner": str(to_checksum_address(new_owner))}, deadline)


def accept_transfer(agent_id: int, new_signer: str, deadline: Integer | None) -> Message:
    return _signer(agent_id, "AcceptOwnership", "owner/acceptance", new_signer, deadline)


def set_signer(agent_id: int, new_signer: str, deadline: Integer | None) -> Message:
    return _signer(agent_id, "SetSigner", "signer", new_signer, deadline)


def _signer(agent_id: int, primary_type: str, path: str, new_signer: str, deadline: Integer | None) -> Message:
    given = str(to_checksum_address(new_signer))
    fields, body = {"agentId": str(agent_id), "signer": given}, {"newSigner": given}
    return _owner(agent_id, primary_type, path, fields=fields, body=body, query=body, deadline=deadline)


def lock_first_loss(agent_id: int, shares: Integer, deadline: Integer | None) -> Message:
    return _same(agent_id, "LockFirstLoss", "first-loss", {"shares": digits(shares, "shares")}, deadline)


def link_erc8004(session: Session, agent_id: int, erc8004_agent_id: Integer, deadline: Integer | None) -> Core[Message]:
    owner = (yield from session.transport.get(f"/agents/{agent_id}"))["agent"]["owner"]
    fields = {"erc8004AgentId": digits(erc8004_agent_id, "erc8004_agent_id")}
    message = _same(agent_id, "LinkERC8004", "erc8004/link", fields, deadline)
    return replace(message, kind="link", signer=str(owner), body_has_nonce=False)


def loss_at_stop(cost_basis: int, exits: Sequence[ExitRule]) -> int | None:
    """Returns what the stop-losses of a position lose at their triggers, in USDC base units; None without one."""
    stops = [rule for rule in exits if rule.trigger_bps < 0]
    left, loss = cost_basis, 0
    for rule in stops:
        sold = left * rule.exit_bps // 10_000
        loss += sold - max(0, sold * (10_000 + rule.trigger_bps) // 10_000)
        left -= sold
    return loss if stops else None


def _purchase_terms(max_slippage: Percent, min_token_out: Integer) -> Json:
    return {
        "minTokenOut": digits(min_token_out, "min_token_out"),
        "maxSlippageBps": bps(max_slippage, "max_slippage", least=0),
    }


def _given_units(usdc: Usdc | None, max_usdc: Usdc | None) -> int:
    if usdc is None or max_usdc is not None:
        raise ValidationError(
            "INVALID_REQUEST", "The trade has no size; pass usdc, or max_loss_usdc, which max_usdc may bound."
        )
    return usdc_units(usdc)


def _max_loss_units(usdc: Usdc | None, max_loss_usdc: Usdc) -> int:
    if usdc is not None:
        raise ValidationError("INVALID_REQUEST", "usdc and max_loss_usdc both size the trade; pass one of them.")
    return usdc_units(max_loss_usdc, "max_loss_usdc")


def _sized(session: Session, agent_id: int, segment: str, query: Json, max_loss: int) -> Core[Json]:
    """Fetches a quote whose amount loses at most `max_loss` at the stops."""
    path = f"/agents/{agent_id}/{segment}/quote"
    quote: Json = yield from session.transport.get(path, **query, maxLossUsdc=usdc_text(max_loss))
    return quote


def _held(session: Session, agent_id: int, position_id: str, max_usdc: Usdc | None) -> Core[tuple[int, list[ExitRule]]]:
    """Returns the cost of a position and its pending rules: the chain's, or the service's if the amount is bounded."""
    held = yield from session.deployment.position_of(position_id)
    if held is not None:
        return held
    if max_usdc is None:
        raise ValidationError(
            "BOUND_REQUIRED",
            "Without a node, only the service says what the position has cost; pass max_usdc.",
            remedy="Pass max_usdc, or a node as `rpc_url`, on which the client reads it.",
        )
    told = (yield from session.transport.get(f"/agents/{agent_id}/positions/{position_id}"))["position"]
    return int(told["usdcCostBasis"]), [ExitRule(rule["triggerBps"], rule["exitBps"]) for rule in told["pendingRules"]]


def _assert_loss(quote: Json, cost_basis: int, exits: Sequence[ExitRule], max_loss: int, max_usdc: Usdc | None) -> int:
    """Returns the amount of a quote. Raises UntrustedQuoteError if the stops of the whole position would lose more."""
    given = (quote.get("body") or {}).get("usdcAmount")
    units = usdc_units(str(given))
    if max_usdc is not None:
        units = min(units, usdc_units(max_usdc, "max_usdc"))
    loss = loss_at_stop(cost_basis + units, exits)
    if loss is not None and loss <= max_loss:
        return units
    expected = f"an amount whose stop-losses lose at most {usdc_text(max_loss)} USDC"
    raise UntrustedQuoteError("QUOTE_USDC_AMOUNT_MISMATCH", [QuoteMismatch("usdcAmount", expected, given)])


def intent(
    agent_id: int,
    primary_type: str,
    segment: str,
    *,
    fields: Json,
    body: Json,
    query: Json,
    deadline: Integer | None,
) -> Message:
    return Message(
        kind="intent",
        primary_type=primary_type,
        fields={"agentId": str(agent_id), **fields},
        path=f"/agents/{agent_id}/{segment}",
        query=query,
        body=body,
        agent_id=agent_id,
        deadline=_deadline(deadline),
    )


def _owner(
    agent_id: int,
    primary_type: str,
    segment: str,
    *,
    fields: Json,
    body: Json,
    query: Json,
    deadline: Integer | None,
    method: str = "POST",
) -> Message:
    return Message(
        kind="owner",
        primary_type=primary_type,
        fields=fields,
        path=f"/agents/{agent_id}/{segment}",
        query=query,
        body=body,
        method=method,
        deadline=_deadline(deadline),
    )


def _same(agent_id: int, primary_type: str, segment: str, fields: Json, deadline: Integer | None) -> Message:
    """Returns a message of an owner with the same fields in message, body and query."""
    message = {"agentId": str(agent_id), **fields}
    return _owner(agent_id, primary_type, segment, fields=message, body=fields, query=fields, deadline=deadline)


def _deadline(deadline: Integer | None) -> str | None:
    return None if deadline is None else digits(deadline, "deadline")


def exits_body(exits: Sequence[ExitRule]) -> list[Json]:
    """Returns a ladder as bodies have it."""
    return [
        {
            "triggerType": "StopLoss" if rule.trigger_bps < 0 else "TakeProfit",
            "triggerBps": rule.trigger_bps,
            "exitBps": rule.exit_bps,
        }
        for rule in exits
    ]


def exits_query(exits: Sequence[ExitRule]) -> str:
    """Returns a ladder as queries have it: `-800:10000,1500:10000`."""
    return ",".join(f"{rule.trigger_bps}:{rule.exit_bps}" for rule in exits)


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)
