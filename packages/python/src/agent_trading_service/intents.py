"""The messages of an agent's signer and of its owner, as `Message` values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_utils.address import is_checksum_address

from .amounts import Percent, Usdc, bps, digits, usdc_text, usdc_units
from .deployment import Deployment
from .effects import Core
from .errors import ValidationError
from .messages import Message
from .typed_data import ExitRule, hash_exits

Json = dict[str, Any]
CLOSE_BPS = 10_000
DEFAULT_SLIPPAGE_BPS = 100
MODES = {"trade": 0, "reduceOnly": 1, "stopped": 2}


def ladder_of(stop: Percent | None, take: Percent | None, exits: Sequence[ExitRule] | None) -> list[ExitRule]:
    """Returns the ladder of `exits`, or of one stop-loss and one take-profit that sell everything."""
    rules = list(exits or [])
    if stop is not None:
        rules.append(ExitRule(-bps(stop, "stop")))
    if take is not None:
        rules.append(ExitRule(bps(take, "take", most=1_000_000)))
    if not rules:
        raise ValidationError(
            "INVALID_REQUEST",
            "The position would have no exit.",
            remedy='Pass stop="8%", take="15%" or exits=[ExitRule(-800)].',
        )
    return rules


def open_position(
    deployment: Deployment,
    agent_id: int,
    symbol: str,
    *,
    usdc: Usdc,
    exits: list[ExitRule],
    max_slippage: Percent,
    min_token_out: int,
    deadline: int | None,
) -> Core[Message]:
    vault = yield from deployment.vault_of(str(agent_id))
    token = yield from deployment.token_of(symbol)
    fields, body = _purchase(usdc, max_slippage, min_token_out)
    return _intent(
        agent_id,
        "OpenPosition",
        "trade-intents",
        fields={"vault": vault, "token": token, **fields, "exitsHash": hash_exits(exits)},
        body={"symbol": symbol, **body, "exits": [_rule(rule) for rule in exits]},
        query={"symbol": symbol, **body, "exits": _pairs(exits)},
        deadline=deadline,
    )


def add_to_position(
    agent_id: int,
    position_id: int,
    *,
    usdc: Usdc,
    max_slippage: Percent,
    min_token_out: int,
    deadline: int | None,
) -> Message:
    fields, body = _purchase(usdc, max_slippage, min_token_out)
    position = {"positionId": digits(position_id, "position_id")}
    body = {**position, **body}
    return _intent(
        agent_id,
        "AddToPosition",
        "add-intents",
        fields={**position, **fields},
        body=body,
        query=body,
        deadline=deadline,
    )


def reduce_position(agent_id: int, position_id: int, share: Percent, deadline: int | None) -> Message:
    fields = {"positionId": digits(position_id, "position_id"), "exitBps": bps(share, "share")}
    return _intent(
        agent_id,
        "ReducePosition",
        "reduce-intents",
        fields=fields,
        body=fields,
        query=fields,
        deadline=deadline,
    )


def set_ladder(agent_id: int, position_id: int, exits: list[ExitRule], deadline: int | None) -> Message:
    position = {"positionId": digits(position_id, "position_id")}
    return _intent(
        agent_id,
        "UpdateExitLadder",
        "exit-ladder-intents",
        fields={**position, "exitsHash": hash_exits(exits)},
        body={**position, "exits": [_rule(rule) for rule in exits]},
        query={**position, "exits": _pairs(exits)},
        deadline=deadline,
    )


def mandate(
    deployment: Deployment,
    agent_id: int,
    *,
    mode: str,
    limits: dict[str, Usdc | None],
    allowed_tokens: Sequence[str] | None,
    valid_until: int | None,
    deadline: int | None,
) -> Core[Message]:
    if mode not in MODES:
        raise ValidationError("INVALID_REQUEST", f"mode is {mode!r}; pass one of {', '.join(MODES)}.")
    tokens: list[str] = []
    for token in allowed_tokens or ():
        tokens.append(token if is_checksum_address(token) else (yield from deployment.token_of(token)))
    units = {name: 0 if limit is None else usdc_units(limit, name) for name, limit in limits.items()}
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


def stop(agent_id: int, *, sell: bool, other_agent_ids: Sequence[int], deadline: int | None) -> Message:
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


def cancel(agent_id: int, until_nonce: int, deadline: int | None) -> Message:
    return _same(agent_id, "CancelIntents", "cancel", {"untilNonce": digits(until_nonce, "until_nonce")}, deadline)


def transfer(agent_id: int, new_owner: str, deadline: int | None) -> Message:
    return _same(agent_id, "OfferOwnership", "owner", {"newOwner": _address(new_owner, "new_owner")}, deadline)


def accept_transfer(agent_id: int, signer: str, deadline: int | None) -> Message:
    return _same(agent_id, "AcceptOwnership", "owner/acceptance", {"signer": _address(signer, "signer")}, deadline)


def set_signer(agent_id: int, signer: str, deadline: int | None) -> Message:
    return _same(agent_id, "SetSigner", "signer", {"signer": _address(signer, "signer")}, deadline)


def _purchase(usdc: Usdc, max_slippage: Percent, min_token_out: int) -> tuple[Json, Json]:
    units = usdc_units(usdc)
    common = {
        "minTokenOut": digits(min_token_out, "min_token_out"),
        "maxSlippageBps": bps(max_slippage, "max_slippage", least=0),
    }
    return {"usdcAmount": str(units), **common}, {"usdcAmount": usdc_text(units), **common}


def _intent(
    agent_id: int,
    primary_type: str,
    segment: str,
    *,
    fields: Json,
    body: Json,
    query: Json,
    deadline: int | None,
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
    deadline: int | None,
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


def _same(agent_id: int, primary_type: str, segment: str, fields: Json, deadline: int | None) -> Message:
    """Returns a message of an owner with the same fields in message, body and query."""
    message = {"agentId": str(agent_id), **fields}
    return _owner(agent_id, primary_type, segment, fields=message, body=fields, query=fields, deadline=deadline)


def _deadline(deadline: int | None) -> str | None:
    return None if deadline is None else digits(deadline, "deadline")


def _rule(rule: ExitRule) -> Json:
    kind = "StopLoss" if rule.trigger_bps < 0 else "TakeProfit"
    return {"triggerType": kind, "triggerBps": rule.trigger_bps, "exitBps": rule.exit_bps}


def _pairs(exits: list[ExitRule]) -> str:
    return ",".join(f"{rule.trigger_bps}:{rule.exit_bps}" for rule in exits)


def _address(value: str, name: str) -> str:
    if is_checksum_address(value):
        return value
    raise ValidationError("INVALID_REQUEST", f"{name} is {value!r}; pass a checksummed address.")
