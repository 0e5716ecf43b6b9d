"""Orders that wait on chain for a price or a time: what an agent's signer does with them, for both clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypedDict, TypeVar

from typing_extensions import Unpack

from . import messages
from .amounts import Integer, Percent, Price, Usdc, bps, digits, price_text, price_units, usdc_text, usdc_units
from .arguments import checks_arguments
from .deployment import is_same_symbol
from .effects import Core
from .errors import NotFoundError, ValidationError
from .intents import CLOSE_BPS, DEFAULT_SLIPPAGE_BPS, exits_body, exits_query, intent, ladder_of
from .messages import Message, Session
from .typed_data import ExitRule, hash_exits

Json = dict[str, Any]
R = TypeVar("R")
Target = str | int
"""A symbol such as `"NVDA"`, or the id of a position."""

_SIDES = ("open", "add", "reduce")
_CONDITIONS = ("none", "atOrBelow", "atOrAbove", "trailing")
_PURCHASE_LIFETIME_SECONDS = 90 * 86_400
_MAX_PARTS = 100
_NO_END = 2**40 - 1
"""The last second that the order book knows."""


class Terms(TypedDict, total=False):
    """What every order can have. Times are Unix seconds."""

    until: Integer
    """Not executed later. By default a purchase waits for 90 days, and a sale as long as its position is open."""
    key: Integer
    """Replaces the agent's open order with the same key; 0 replaces none."""
    deadline: Integer
    """Until when the order may be placed."""
    note: str
    """Why it trades: public, not signed."""


class Schedule(Terms, total=False):
    """What an order can have that is not about a time."""

    after: Integer
    """Not executed earlier."""


@dataclass(frozen=True)
class _Purchase:
    usdc: Usdc
    max_slippage: Percent
    stop: Percent | None
    take: Percent | None
    exits: Sequence[ExitRule] | None


@dataclass(frozen=True)
class _Wait:
    """What an order waits for."""

    condition: str = "none"
    price: Price | None = None
    trail_bps: int = 0
    parts: int = 1
    every: Integer = 0


@checks_arguments
class OrderCalls(Generic[R]):
    """
    Places, cancels and reads orders. A receipt has `orderId`. Once an order is on chain, anyone can execute it, with or
    without this service. `Schedule` has the optional fields of every order.

    A purchase of a symbol opens a position and needs an exit; one for a position id adds to that position. A sale of a
    symbol is of the agent's open position in it.
    """

    def __init__(self, session: Session, agent_id: int, run: Callable[[object, Core[Json]], R]) -> None:
        self._session = session
        self._agent_id = agent_id
        self._run = run

    def limit(
        self,
        target: Target,
        *,
        usdc: Usdc,
        at: Price,
        stop: Percent | None = None,
        take: Percent | None = None,
        exits: Sequence[ExitRule] | None = None,
        max_slippage: Percent = DEFAULT_SLIPPAGE_BPS,
        **schedule: Unpack[Schedule],
    ) -> R:
        """Buys once the oracle's price is `at` or lower."""
        purchase = _Purchase(usdc, max_slippage, stop, take, exits)
        return self._place("limit", target, purchase, _Wait("atOrBelow", at), schedule)

    def breakout(
        self,
        target: Target,
        *,
        usdc: Usdc,
        at: Price,
        stop: Percent | None = None,
        take: Percent | None = None,
        exits: Sequence[ExitRule] | None = None,
        max_slippage: Percent = DEFAULT_SLIPPAGE_BPS,
        **schedule: Unpack[Schedule],
    ) -> R:
        """Buys once the oracle's price is `at` or higher."""
        purchase = _Purchase(usdc, max_slippage, stop, take, exits)
        return self._place("breakout", target, purchase, _Wait("atOrAbove", at), schedule)

    def stop(self, target: Target, *, at: Price, share: Percent = CLOSE_BPS, **schedule: Unpack[Schedule]) -> R:
        """Sells a share of a position once the oracle's price is `at` or lower; `at` may be above the entry price."""
        return self._place("stop", target, share, _Wait("atOrBelow", at), schedule)

    def take_profit(self, target: Target, *, at: Price, share: Percent = CLOSE_BPS, **schedule: Unpack[Schedule]) -> R:
        """Sells a share of a position once the oracle's price is `at` or higher."""
        return self._place("takeProfit", target, share, _Wait("atOrAbove", at), schedule)

    def trailing_stop(
        self,
        target: Target,
        *,
        trail: Percent,
        activate_at: Price | None = None,
        share: Percent = CLOSE_BPS,
        **schedule: Unpack[Schedule],
    ) -> R:
        """Sells a share of a position `trail` below the highest price since placing, or since `activate_at`."""
        wait = _Wait("trailing", activate_at, bps(trail, "trail", most=9_999))
        return self._place("trailingStop", target, share, wait, schedule)

    def twap(
        self,
        target: Target,
        *,
        parts: int,
        every: Integer,
        usdc: Usdc | None = None,
        share: Percent | None = None,
        stop: Percent | None = None,
        take: Percent | None = None,
        exits: Sequence[ExitRule] | None = None,
        max_slippage: Percent = DEFAULT_SLIPPAGE_BPS,
        **schedule: Unpack[Schedule],
    ) -> R:
        """Buys, or sells a share of a position, in 1 to 100 equal parts: one every so many seconds, at least 60."""
        if (usdc is None) == (share is None):
            raise ValidationError("INVALID_REQUEST", "A twap order buys or sells: pass usdc or share, not both.")
        traded: _Purchase | Percent | None = share
        if usdc is not None:
            traded = _Purchase(usdc, max_slippage, stop, take, exits)
        assert traded is not None
        return self._place("twap", target, traded, _Wait(parts=parts, every=every), schedule)

    def time_exit(self, target: Target, *, after: Integer, share: Percent = CLOSE_BPS, **terms: Unpack[Terms]) -> R:
        """
        Sells a share of a position at a time in Unix seconds. With a `key`, a later one replaces it: placed again and
        again, it sells only once the agent falls silent.
        """
        return self._place("timeExit", target, share, _Wait(), {**terms, "after": after})

    def cancel(self, order_id: str, *, deadline: Integer | None = None) -> R:
        """Ends an open order; once that is mined, no later block executes it."""
        order_id = _checked(order_id)
        fields = {"orderId": order_id}
        message = intent(
            self._agent_id,
            "CancelOrder",
            f"orders/{order_id}/cancel",
            fields=fields,
            body={},
            query={"type": "cancel", **fields},
            deadline=deadline,
        )
        message = replace(message, quote_path=f"/agents/{self._agent_id}/orders/quote")
        return self._run(self._agent_id, messages.send(self._session, message))

    def get(self, order_id: str) -> R:
        """Returns an order: what it waits for, the distance to its trigger, its executions and its last refusal."""
        return self._read(f"/{_checked(order_id)}")

    def list(self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None) -> R:
        """Returns a page of `orders`, newest first. `state` is `"open"` or `"past"`; `cursor` is a `nextCursor`."""
        return self._read("", state=state, limit=limit, cursor=cursor)

    def _read(self, path: str, **query: Any) -> R:
        return self._run(None, self._session.transport.get(f"/agents/{self._agent_id}/orders{path}", **query))

    def _place(self, kind: str, target: Target, traded: _Purchase | Percent, wait: _Wait, schedule: Schedule) -> R:
        order = _order(self._session, self._agent_id, kind, target, traded, wait, schedule)
        return self._run(self._agent_id, messages.send(self._session, order))


def _order(
    session: Session,
    agent_id: int,
    kind: str,
    target: Target,
    traded: _Purchase | Percent,
    wait: _Wait,
    schedule: Schedule,
) -> Core[Message]:
    """Returns an order with every field: the client leaves no default to the service."""
    purchase = traded if isinstance(traded, _Purchase) else None
    position_id, named = yield from _resolve(session, agent_id, target, buys=purchase is not None)
    symbol, token = yield from session.deployment.token_of(named, agent_id)
    now = yield from session.deployment.now()
    opens = purchase is not None and position_id == "0"
    side = "reduce" if purchase is None else "open" if opens else "add"
    units = 0 if purchase is None else usdc_units(purchase.usdc)
    exits = _exits(purchase, opens)
    price = 0 if wait.price is None else price_units(wait.price, "activate_at" if kind == "trailingStop" else "at")
    until = schedule.get("until", _NO_END if purchase is None else now + _PURCHASE_LIFETIME_SECONDS)
    times: Json = {
        "validAfter": digits(schedule.get("after", 0), "after"),
        "validUntil": digits(until, "until"),
        "parts": _parts(wait.parts),
        "interval": digits(wait.every, "every"),
        "key": digits(schedule.get("key", 0), "key"),
    }
    common: Json = {
        "positionId": position_id,
        "exitBps": 0 if isinstance(traded, _Purchase) else bps(traded, "share"),
        "maxSlippageBps": 0 if purchase is None else bps(purchase.max_slippage, "max_slippage", least=0),
        "trailBps": wait.trail_bps,
        **times,
    }
    # What an order does not use has no place in a body or a quote.
    used: Json = {
        **({"usdcAmount": usdc_text(units)} if units else {}),
        **({"price": price_text(price)} if price else {}),
    }
    message = intent(
        agent_id,
        "PlaceOrder",
        "orders",
        fields={
            "side": _SIDES.index(side),
            "token": token,
            "usdcAmount": str(units),
            "exitsHash": hash_exits(exits),
            "condition": _CONDITIONS.index(wait.condition),
            "price": str(price),
            **common,
        },
        body={
            "side": side,
            "symbol": symbol,
            "condition": wait.condition,
            **common,
            **used,
            **({"exits": exits_body(exits)} if exits else {}),
        },
        query={
            "type": kind,
            **({"symbol": symbol} if opens else {"positionId": position_id}),
            **{name: common[name] for name in ("exitBps", "trailBps") if common[name]},
            **({} if purchase is None else {"maxSlippageBps": common["maxSlippageBps"]}),
            **times,
            **used,
            **({"exits": exits_query(exits)} if exits else {}),
        },
        deadline=schedule.get("deadline"),
    )
    return replace(message, note=schedule.get("note"))


def _resolve(session: Session, agent_id: int, target: Target, *, buys: bool) -> Core[tuple[str, str]]:
    """
    Returns position id (0 to open one) and symbol. Where the service lies about one of them, the order book refuses the
    order: its position must be the agent's own, and in its token.
    """
    positions = f"/agents/{agent_id}/positions"
    if not isinstance(target, str) or target.isdigit():
        position_id = digits(target, "target")
        found = yield from session.transport.get(f"{positions}/{position_id}")
        return position_id, str(found["position"]["symbol"])
    if buys:
        return "0", target
    listed = (yield from session.transport.get(positions))["positions"]
    for position in listed:
        if is_same_symbol(position["symbol"], target):
            return digits(position["positionId"], "positionId"), str(position["symbol"])
    raise NotFoundError(
        "POSITION_NOT_FOUND",
        f"Agent {agent_id} has no open position in {target}.",
        remedy=f"Open one, or pass one of {', '.join(each['symbol'] for each in listed) or 'its positions'}.",
    )


def _parts(parts: int) -> int:
    if isinstance(parts, int) and not isinstance(parts, bool) and 1 <= parts <= _MAX_PARTS:
        return parts
    raise ValidationError("INVALID_REQUEST", f"parts is {parts!r}; pass an int from 1 to {_MAX_PARTS}.")


def _exits(purchase: _Purchase | None, opens: bool) -> list[ExitRule]:
    if purchase is None:
        return []
    if opens:
        return ladder_of(purchase.stop, purchase.take, purchase.exits)
    if purchase.stop is None and purchase.take is None and not purchase.exits:
        return []
    raise ValidationError(
        "INVALID_REQUEST",
        "A purchase that adds to a position leaves its exit ladder as it is.",
        remedy="Leave out stop, take and exits, or change the ladder with set_ladder.",
    )


def _checked(order_id: str) -> str:
    if re.fullmatch(r"0x[0-9a-fA-F]{64}", order_id):
        return order_id.lower()
    raise ValidationError("INVALID_REQUEST", f"order_id is {order_id!r}; pass the orderId of a receipt.")
