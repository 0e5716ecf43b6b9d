"""Python client of the agent trading service: quotes, checks, signs and relays intents."""

from .amounts import Percent, Price, Usdc
from .client import Agent, AsyncAgent, AsyncClient, AsyncOwner, Client, Owner
from .deployment import Pins
from .effects import Account
from .errors import (
    AgentTradingError,
    ClockWarning,
    NetworkError,
    NotFoundError,
    PaymentError,
    QuoteMismatch,
    RateLimitedError,
    RefusedError,
    Submission,
    UnavailableError,
    UnknownOutcomeError,
    UntrustedQuoteError,
    ValidationError,
)
from .events import Event
from .generated import models
from .payment import Payer
from .tables import frame, rows
from .typed_data import ExitRule

__all__ = [
    "Account",
    "Agent",
    "AgentTradingError",
    "AsyncAgent",
    "AsyncClient",
    "AsyncOwner",
    "Client",
    "ClockWarning",
    "Event",
    "ExitRule",
    "NetworkError",
    "NotFoundError",
    "Owner",
    "Payer",
    "PaymentError",
    "Percent",
    "Pins",
    "Price",
    "QuoteMismatch",
    "RateLimitedError",
    "RefusedError",
    "Submission",
    "UnavailableError",
    "UnknownOutcomeError",
    "UntrustedQuoteError",
    "Usdc",
    "ValidationError",
    "frame",
    "models",
    "rows",
]
