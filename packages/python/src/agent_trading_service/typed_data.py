"""The EIP-712 messages, their digests and the hash of an exit ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak

Field = tuple[str, str]
_OWNER: list[Field] = [("nonce", "uint256"), ("deadline", "uint256")]
_INTENT: list[Field] = [("deadline", "uint256"), ("nonce", "uint256")]
_WEBHOOK: list[Field] = [("salt", "bytes32"), ("deadline", "uint256")]
_AGENT: Field = ("agentId", "uint256")

SIGNING_TYPES: dict[str, list[Field]] = {
    "SelfRegister": [
        ("vault", "address"),
        ("name", "string"),
        ("metadataURI", "string"),
        ("signer", "address"),
        ("linkERC8004", "bool"),
        ("erc8004AgentId", "uint256"),
        *_OWNER,
    ],
    "LinkERC8004": [_AGENT, ("erc8004AgentId", "uint256"), *_OWNER],
    "OpenPosition": [
        _AGENT,
        ("vault", "address"),
        ("token", "address"),
        ("usdcAmount", "uint256"),
        ("minTokenOut", "uint256"),
        ("maxSlippageBps", "uint16"),
        ("exitsHash", "bytes32"),
        *_INTENT,
    ],
    "AddToPosition": [
        _AGENT,
        ("positionId", "uint256"),
        ("usdcAmount", "uint256"),
        ("minTokenOut", "uint256"),
        ("maxSlippageBps", "uint16"),
        *_INTENT,
    ],
    "ReducePosition": [_AGENT, ("positionId", "uint256"), ("exitBps", "uint16"), *_INTENT],
    "UpdateExitLadder": [_AGENT, ("positionId", "uint256"), ("exitsHash", "bytes32"), *_INTENT],
    "PlaceOrder": [
        _AGENT,
        ("side", "uint8"),
        ("token", "address"),
        ("positionId", "uint256"),
        ("usdcAmount", "uint256"),
        ("exitBps", "uint16"),
        ("exitsHash", "bytes32"),
        ("maxSlippageBps", "uint16"),
        ("condition", "uint8"),
        ("price", "uint256"),
        ("trailBps", "uint16"),
        ("validAfter", "uint256"),
        ("validUntil", "uint256"),
        ("parts", "uint8"),
        ("interval", "uint256"),
        ("key", "uint256"),
        *_INTENT,
    ],
    "CancelOrder": [_AGENT, ("orderId", "bytes32"), *_INTENT],
    "OwnAgent": [
        ("signer", "address"),
        ("vault", "address"),
        ("name", "string"),
        ("metadataURI", "string"),
        ("linkERC8004", "bool"),
        ("erc8004AgentId", "uint256"),
        *_OWNER,
    ],
    "OfferOwnership": [_AGENT, ("newOwner", "address"), *_OWNER],
    "AcceptOwnership": [_AGENT, ("signer", "address"), *_OWNER],
    "SetSigner": [_AGENT, ("signer", "address"), *_OWNER],
    "SetMandate": [
        _AGENT,
        ("mode", "uint8"),
        ("maxTradeUsdc", "uint256"),
        ("maxDailyTurnoverUsdc", "uint256"),
        ("maxExposureUsdc", "uint256"),
        ("allowedTokens", "address[]"),
        ("validUntil", "uint256"),
        *_OWNER,
    ],
    "StopBuying": [("agentIds", "uint256[]"), *_OWNER],
    "CloseAll": [("agentIds", "uint256[]"), *_OWNER],
    "CancelIntents": [_AGENT, ("untilNonce", "uint256"), *_OWNER],
    "LockFirstLoss": [_AGENT, ("shares", "uint256"), *_OWNER],
    "CreateWebhook": [_AGENT, ("url", "string"), ("eventTypes", "string[]"), *_WEBHOOK],
    "ListWebhooks": [_AGENT, ("deadline", "uint256")],
    "ManageWebhook": [_AGENT, ("webhookId", "bytes32"), ("action", "string"), *_WEBHOOK],
}
"""Every message that this package signs, fields in signing order. It signs no other type."""

_DOMAIN: list[Field] = [
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
]
INTENTS = ("OpenPosition", "AddToPosition", "ReducePosition", "UpdateExitLadder")
ORDERS = ("PlaceOrder", "CancelOrder")

TypedData = dict[str, Any]


@dataclass(frozen=True)
class Domain:
    """An EIP-712 domain."""

    name: str
    version: str
    chain_id: int
    verifying_contract: str


@dataclass(frozen=True)
class ExitRule:
    """At `trigger_bps` from the entry price (negative: stop-loss), sell `exit_bps` of what remains."""

    trigger_bps: int
    exit_bps: int = 10_000


def contract_of(primary_type: str) -> str:
    """Returns the name of the contract in whose domain a message is signed."""
    if primary_type in ("SelfRegister", "LinkERC8004"):
        return "AgentRegistry"
    if primary_type in ORDERS:
        return "OrderBook"
    return "TradeRouter" if primary_type in INTENTS else "OwnerControls"


def nonce_contract_of(primary_type: str) -> str:
    """Returns the name of the contract that counts a message's nonces. Orders take those of the agent's intents."""
    return "TradeRouter" if primary_type in ORDERS else contract_of(primary_type)


def typed_data_of(domain: Domain, primary_type: str, message: dict[str, Any]) -> TypedData:
    """Returns typed data for `eth_signTypedData_v4`. Integers of more than 16 bits are digits."""
    return {
        "domain": {
            "name": domain.name,
            "version": domain.version,
            "chainId": domain.chain_id,
            "verifyingContract": domain.verifying_contract,
        },
        "types": {"EIP712Domain": _fields(_DOMAIN), primary_type: _fields(SIGNING_TYPES[primary_type])},
        "primaryType": primary_type,
        "message": message,
    }


def digest_of(typed_data: TypedData) -> str:
    """Returns the EIP-712 digest, by which the service identifies a signed message."""
    signable = encode_typed_data(full_message=typed_data)
    return "0x" + keccak(b"\x19" + signable.version + signable.header + signable.body).hex()


def hash_exits(exits: Sequence[ExitRule]) -> str:
    """Returns keccak256(abi.encode(bytes32[])) of a ladder: one hash of type, trigger and share per rule."""
    rules = [_word(0 if rule.trigger_bps < 0 else 1) + _word(rule.trigger_bps) + _word(rule.exit_bps) for rule in exits]
    encoded = _word(32) + _word(len(rules)) + b"".join(keccak(rule) for rule in rules)
    return "0x" + keccak(encoded).hex()


def _word(value: int) -> bytes:
    return value.to_bytes(32, "big", signed=value < 0)


def _fields(fields: list[Field]) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in fields]
