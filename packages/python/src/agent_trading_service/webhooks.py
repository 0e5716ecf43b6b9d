"""The webhooks of an agent. Their messages have no nonce and move nothing, so the client builds them without quotes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from .arguments import checks_arguments
from .effects import Account, Core, Sign
from .errors import Submission, UnavailableError, ValidationError
from .messages import Session, post
from .typed_data import Domain, digest_of, typed_data_of

Json = dict[str, Any]
R = TypeVar("R")
_LIFETIME_SECONDS = 600
_MAX_ROTATIONS = 3


@checks_arguments
class WebhookCalls(Generic[R]):
    """
    Creates and changes webhooks, signed by the agent's owner or signer. Verify deliveries with `standardwebhooks`.
    Answers have `webhook`, and `secret` where there is a new one: store it, the service never shows it again.
    """

    def __init__(
        self, session: Session, agent_id: int, account: Account | None, run: Callable[[object, Core[Json]], R]
    ) -> None:
        self._session = session
        self._agent_id = agent_id
        self._account = account
        self._run = run

    def create(self, url: str, *, event_types: Sequence[str] = ()) -> R:
        """Posts the events that follow to `url` (https, port 443, a public host); all types by default."""
        return self._run(None, self._create(url, list(event_types)))

    def list(self) -> R:
        """Returns `webhooks` that the account may see, oldest first."""
        return self._run(None, self._send("ListWebhooks", "/list", {}))

    def test(self, webhook_id: str) -> R:
        """Posts a test event at once; `lastTest` of the webhook says what the receiver responded."""
        return self._run(None, self._change(webhook_id, "test"))

    def rotate_secret(self, webhook_id: str) -> R:
        """Replaces the secret; the old one stays valid for 24 hours."""
        return self._run(None, self._rotate(webhook_id))

    def enable(self, webhook_id: str) -> R:
        """Continues a disabled webhook with the event that failed, or retries a failing one at once."""
        return self._run(None, self._change(webhook_id, "enable"))

    def delete(self, webhook_id: str) -> R:
        """Deletes a webhook."""
        return self._run(None, self._change(webhook_id, "delete"))

    def _create(self, url: str, event_types: Sequence[str]) -> Core[Json]:
        fields = {"url": url, "eventTypes": event_types, "salt": _salt()}
        created = yield from self._send("CreateWebhook", "", fields)
        if "secret" in created:
            return created
        return (yield from self._rotate(str(created["webhook"]["webhookId"])))

    def _rotate(self, webhook_id: str) -> Core[Json]:
        for _ in range(_MAX_ROTATIONS):
            rotated = yield from self._change(webhook_id, "rotateSecret")
            # Without a secret, the answer was lost and the message repeated: only another rotation shows one.
            if "secret" in rotated:
                return rotated
        raise UnavailableError(
            "SECRET_NOT_SHOWN",
            f"The service replaced the secret of the webhook {webhook_id} and does not show it.",
            remedy="Call rotate_secret again.",
            retryable=True,
        )

    def _change(self, webhook_id: str, action: str) -> Core[Json]:
        ids = {"webhookId": webhook_id}
        fields = {"action": action, "salt": _salt()}
        return (yield from self._send("ManageWebhook", f"/{quote(webhook_id, safe='')}", fields, ids))

    def _send(self, primary_type: str, path: str, fields: Json, ids: Json | None = None) -> Core[Json]:
        session = self._session
        account = self._account or session.account
        if account is None:
            raise ValidationError(
                "NO_ACCOUNT",
                "The agent's owner or signer has to sign, and the client has no account.",
                remedy="Pass `account` to the client.",
            )
        registry = yield from session.deployment.domain_of("AgentRegistry")
        # The service's own domain: it names the registry and the host, under a name that no contract has.
        name = f"Agent Trading Service at {urlsplit(session.transport.origin).hostname}"
        domain = Domain(name, "1", registry.chain_id, registry.verifying_contract)
        now = yield from session.deployment.now()
        deadline = str(max(now, int(time.time())) + _LIFETIME_SECONDS)
        message = {"agentId": str(self._agent_id), **(ids or {}), **fields, "deadline": deadline}
        typed_data = typed_data_of(domain, primary_type, message)
        signature = yield Sign(account, typed_data)
        body = {**fields, "deadline": deadline, "signature": signature}
        target = f"/agents/{self._agent_id}/webhooks{path}"
        return (yield from post(session, Submission("webhook", "POST", target, body, digest_of(typed_data))))


def _salt() -> str:
    return "0x" + secrets.token_hex(32)
