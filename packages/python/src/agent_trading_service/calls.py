"""What an agent's signer and its owner do, for the sync and the async client: `R` is what a call returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from . import intents, messages
from .amounts import Integer, Percent, Price, Usdc, digits, price_text, price_units
from .arguments import Address, json_of
from .effects import Account, Core
from .intents import CLOSE_BPS, DEFAULT_SLIPPAGE_BPS, ladder_of
from .messages import Message, Session
from .orders import OrderCalls
from .typed_data import ExitRule
from .webhooks import WebhookCalls

Json = dict[str, Any]
R = TypeVar("R")


class AgentCalls(Generic[R]):
    """What an agent's signer does. Each method quotes, compares, checks, signs and submits, and returns the receipt."""

    def __init__(self, session: Session, agent_id: Integer) -> None:
        self._session = session
        self.agent_id = int(digits(agent_id, "agent_id"))
        self.orders: OrderCalls[R] = OrderCalls(session, self.agent_id, self._run)
        """Orders that wait on chain for a price or a time."""
        self.webhooks: WebhookCalls[R] = WebhookCalls(session, self.agent_id, None, self._run)
        """Events posted to a server of yours."""

    def _run(self, turn: object, core: Core[Json]) -> R:
        raise NotImplementedError

    def open(
        self,
        symbol: str,
        *,
        usdc: Usdc | None = None,
        max_loss_usdc: Usdc | None = None,
        max_usdc: Usdc | None = None,
        stop: Percent | None = None,
        take: Percent | None = None,
        exits: Sequence[ExitRule] | None = None,
        max_slippage: Percent = DEFAULT_SLIPPAGE_BPS,
        min_token_out: Integer = 0,
        deadline: Integer | None = None,
        note: str | None = None,
    ) -> R:
        """Opens a position with an exit ladder: `stop="8%"` sells everything at -8 %. `note` is public, not signed.

        `max_loss_usdc` instead of `usdc` buys as much that the stop-losses lose at most this, gaps in the price aside,
        and for at most `max_usdc`.
        """
        message = intents.open_position(
            self._session,
            self.agent_id,
            symbol,
            usdc=usdc,
            max_loss_usdc=max_loss_usdc,
            max_usdc=max_usdc,
            exits=ladder_of(stop, take, exits),
            max_slippage=max_slippage,
            min_token_out=min_token_out,
            deadline=deadline,
        )
        return self._send(message, note)

    def add(
        self,
        position_id: Integer,
        *,
        usdc: Usdc | None = None,
        max_loss_usdc: Usdc | None = None,
        max_usdc: Usdc | None = None,
        max_slippage: Percent = DEFAULT_SLIPPAGE_BPS,
        min_token_out: Integer = 0,
        deadline: Integer | None = None,
        note: str | None = None,
    ) -> R:
        """Adds to a position; its ladder stays. `max_loss_usdc` counts the stop-losses of the whole position.

        Without a node, which knows its cost and its stops, `max_loss_usdc` needs `max_usdc`: the most to buy for.
        """
        message = intents.add_to_position(
            self._session,
            self.agent_id,
            position_id,
            usdc=usdc,
            max_loss_usdc=max_loss_usdc,
            max_usdc=max_usdc,
            max_slippage=max_slippage,
            min_token_out=min_token_out,
            deadline=deadline,
        )
        return self._send(message, note)

    def reduce(
        self, position_id: Integer, share: Percent, *, deadline: Integer | None = None, note: str | None = None
    ) -> R:
        """Sells a share of a position, such as `"50%"`."""
        return self._send(intents.reduce_position(self.agent_id, position_id, share, deadline), note)

    def close(self, position_id: Integer, *, deadline: Integer | None = None, note: str | None = None) -> R:
        """Sells a whole position."""
        return self._send(intents.reduce_position(self.agent_id, position_id, CLOSE_BPS, deadline), note)

    def set_ladder(
        self,
        position_id: Integer,
        *,
        stop: Percent | None = None,
        take: Percent | None = None,
        exits: Sequence[ExitRule] | None = None,
        deadline: Integer | None = None,
        note: str | None = None,
    ) -> R:
        """Replaces the pending exit rules of a position."""
        ladder = ladder_of(stop, take, exits)
        return self._send(intents.set_ladder(self.agent_id, position_id, ladder, deadline), note)

    def what_if(self, *, prices: Mapping[str, Price] | None = None, intents: Sequence[Mapping[str, Any]] = ()) -> R:
        """
        Shows what would happen at other prices in US dollars, and after intents, in their order: each is the body of an
        intent without deadline, nonce and signature, with a `kind`. Signs and sends nothing.
        """
        units = {symbol: price_units(price, f"prices[{symbol!r}]") for symbol, price in (prices or {}).items()}
        shown = {symbol: price_text(price) for symbol, price in units.items()}
        body = {"prices": shown, "intents": json_of(intents, "intents")}
        path = f"/agents/{self.agent_id}/what-if"
        return self._run(None, self._session.transport.once(path, method="POST", body=body))

    def _send(self, message: Message | Core[Message], note: str | None) -> R:
        return self._run(self.agent_id, messages.send(self._session, _noted(message, note)))


class OwnerCalls(Generic[R]):
    """What an agent's owner signs. Nobody pays gas; the service relays."""

    def __init__(self, session: Session, agent_id: Integer, account: Account | None) -> None:
        self._session = session
        self._account = account
        self.agent_id = int(digits(agent_id, "agent_id"))
        self.webhooks: WebhookCalls[R] = WebhookCalls(session, self.agent_id, account, self._run)
        """Webhooks that only the owner sees and changes."""

    def _run(self, turn: object, core: Core[Json]) -> R:
        raise NotImplementedError

    def set_mandate(
        self,
        mode: str = "trade",
        *,
        max_trade_usdc: Usdc | None = None,
        max_daily_turnover_usdc: Usdc | None = None,
        max_exposure_usdc: Usdc | None = None,
        allowed_tokens: Sequence[str] | None = None,
        valid_until: Integer | None = None,
        deadline: Integer | None = None,
    ) -> R:
        """Replaces the whole mandate: what the agent may do. A limit that is left out is no limit."""
        message = intents.mandate(
            self._session.deployment,
            self.agent_id,
            mode=mode,
            limits={
                "maxTradeUsdc": max_trade_usdc,
                "maxDailyTurnoverUsdc": max_daily_turnover_usdc,
                "maxExposureUsdc": max_exposure_usdc,
            },
            allowed_tokens=allowed_tokens,
            valid_until=valid_until,
            deadline=deadline,
        )
        return self._send(message)

    def stop(
        self, *, sell: bool = False, other_agent_ids: Sequence[Integer] = (), deadline: Integer | None = None
    ) -> R:
        """Stops buying; with `sell`, also sells every position."""
        message = intents.stop(self.agent_id, sell=sell, other_agent_ids=other_agent_ids, deadline=deadline)
        return self._send(message)

    def cancel(self, until_nonce: Integer, *, deadline: Integer | None = None) -> R:
        """Voids the intents below a nonce that the agent has signed and that are not mined yet."""
        return self._send(intents.cancel(self.agent_id, until_nonce, deadline))

    def transfer(self, new_owner: Address, *, deadline: Integer | None = None) -> R:
        """Offers the agent to a new owner; nothing changes before it is accepted."""
        return self._send(intents.transfer(self.agent_id, new_owner, deadline))

    def accept_transfer(self, new_signer: Address, *, deadline: Integer | None = None) -> R:
        """Takes an agent that is offered to this account, and names the key that trades for it."""
        return self._send(intents.accept_transfer(self.agent_id, new_signer, deadline))

    def set_signer(self, new_signer: Address, *, deadline: Integer | None = None) -> R:
        """Replaces the key that trades for the agent."""
        return self._send(intents.set_signer(self.agent_id, new_signer, deadline))

    def lock_first_loss(self, shares: Integer, *, deadline: Integer | None = None) -> R:
        """
        Makes vault shares of the owner (12 decimals) answer for the agent's losses; 0 frees them.
        `client.get_first_loss_quote(7)` says in `body` how many the next track requires.
        """
        return self._send(intents.lock_first_loss(self.agent_id, shares, deadline))

    def link_erc8004(self, erc8004_agent_id: Integer, *, deadline: Integer | None = None) -> R:
        """Links the agent to an ERC-8004 identity of its owner."""
        return self._send(intents.link_erc8004(self._session, self.agent_id, erc8004_agent_id, deadline))

    def _send(self, message: Message | Core[Message]) -> R:
        return self._run(("owner", self.agent_id), messages.send(self._session, message, self._account))


def _noted(message: Message | Core[Message], note: str | None) -> Core[Message]:
    built = message if isinstance(message, Message) else (yield from message)
    return replace(built, note=note)
