"""Pays the registration fee over x402 (scheme `exact`, EIP-3009), within terms that nothing else can widen."""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any

from eth_utils.address import is_address

from .arguments import Address, check_fields
from .effects import Account, Core, Sign
from .errors import PaymentError, QuoteMismatch, UntrustedQuoteError

_TRANSFER = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]
_DOMAIN = [
    {"name": "name", "type": "string"},
    {"name": "version", "type": "string"},
    {"name": "chainId", "type": "uint256"},
    {"name": "verifyingContract", "type": "address"},
]
_CLOCK_SKEW_SECONDS = 600
_X402_VERSION = 2


@dataclass(frozen=True)
class Payer:
    """What a payer may pay, and nothing else."""

    account: Account
    """The account that holds the asset; it may be another than the agent's."""
    chain_id: int
    asset: Address
    """The token in which the deployment takes its fee."""
    max_amount: int
    """The largest payment, in base units of the asset."""
    pay_to: Address | None = None
    max_validity_seconds: int = 900

    def __post_init__(self) -> None:
        check_fields(self)

    def assert_accepts(self, requirements: Any) -> None:
        """Raises unless these requirements are what the payer may pay."""
        mismatches = self._mismatches(requirements if isinstance(requirements, dict) else {})
        if mismatches:
            raise UntrustedQuoteError("PAYMENT_NOT_ALLOWED", mismatches)

    def pay(self, required: Any) -> Core[dict[str, str]]:
        """Signs the payment that the body of a 402 response requires. Returns the header that carries it."""
        offered = required.get("accepts") if isinstance(required, dict) else None
        if not (isinstance(offered, list) and offered and all(isinstance(terms, dict) for terms in offered)):
            raise PaymentError("PAYMENT_REQUIRED", "The service requires a payment and offers no way to pay it.")
        accepted = next((terms for terms in offered if not self._mismatches(terms)), None)
        if accepted is None:
            self.assert_accepts(offered[0])
        assert accepted is not None
        now = int(time.time())
        authorization = {
            "from": self.account.address,
            "to": accepted["payTo"],
            "value": str(accepted["amount"]),
            "validAfter": str(now - _CLOCK_SKEW_SECONDS),
            "validBefore": str(now + int(accepted["maxTimeoutSeconds"])),
            "nonce": "0x" + secrets.token_hex(32),
        }
        domain = {
            "name": accepted["extra"]["name"],
            "version": accepted["extra"]["version"],
            "chainId": self.chain_id,
            "verifyingContract": self.asset,
        }
        typed_data = {
            "domain": domain,
            "types": {"EIP712Domain": _DOMAIN, "TransferWithAuthorization": _TRANSFER},
            "primaryType": "TransferWithAuthorization",
            "message": authorization,
        }
        signature = yield Sign(self.account, typed_data)
        payload = {
            "x402Version": _X402_VERSION,
            "accepted": accepted,
            "payload": {"signature": signature, "authorization": authorization},
        }
        if isinstance(required.get("resource"), dict):
            payload["resource"] = required["resource"]
        return {"payment-signature": base64.b64encode(json.dumps(payload).encode()).decode()}

    def _mismatches(self, given: dict[str, Any]) -> list[QuoteMismatch]:
        """Returns what payment requirements ask for that the terms do not allow."""
        expected = {"scheme": "exact", "network": f"eip155:{self.chain_id}", "asset": self.asset}
        if self.pay_to is not None:
            expected["payTo"] = self.pay_to
        mismatches = [
            QuoteMismatch(name, value, given.get(name))
            for name, value in expected.items()
            if str(given.get(name)).lower() != value.lower()
        ]
        if not is_address(given.get("payTo")):
            mismatches.append(QuoteMismatch("payTo", "an address", given.get("payTo")))
        extra = given.get("extra")
        domain = extra if isinstance(extra, dict) else {}
        for name in ("name", "version"):
            if not isinstance(domain.get(name), str):
                mismatches.append(QuoteMismatch(f"extra.{name}", "a string", domain.get(name)))
        amount = str(given.get("amount"))
        if not (re.fullmatch(r"[0-9]{1,78}", amount) and int(amount) <= self.max_amount):
            mismatches.append(QuoteMismatch("amount", f"at most {self.max_amount}", given.get("amount")))
        validity = given.get("maxTimeoutSeconds")
        if not (isinstance(validity, int) and 0 < validity <= self.max_validity_seconds):
            mismatches.append(QuoteMismatch("maxTimeoutSeconds", f"at most {self.max_validity_seconds}", validity))
        return mismatches
