"""Amounts without floats: USDC and prices as decimal text, `Decimal` or int, shares as percent or basis points."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from .arguments import Form
from .errors import ValidationError

USDC_DECIMALS = 6
PRICE_DECIMALS = 8
Usdc = Annotated[str | Decimal | int, Form("text such as '250.5', a Decimal or an int")]
"""USDC: decimal text or a `Decimal` in USDC (`"250.5"`), or an int in whole USDC. Never a float."""
Price = Annotated[str | Decimal | int, Form("text such as '120.5', a Decimal or an int")]
"""US dollars for one whole token, in the same forms."""
Percent = Annotated[str | int, Form("a percentage such as '8%' or basis points as an int")]
"""A share: `"8%"`, or an int in basis points."""
Integer = Annotated[int | str, Form("an int or its digits")]
"""A whole number, such as an id or a time in Unix seconds, or its digits."""

# No amount, id or time on a chain has more digits than a uint256.
_DECIMAL = re.compile(r"[0-9]{1,78}(\.[0-9]+)?")
_PERCENT = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,2})?) ?%")
_DIGITS = re.compile(r"[0-9]{1,78}")


def usdc_units(amount: Usdc, name: str = "usdc") -> int:
    """Returns a positive amount of USDC in base units. Raises ValidationError instead of rounding."""
    return _units(amount, name, USDC_DECIMALS)


def usdc_text(units: int) -> str:
    """Formats base units of USDC: 250500000 becomes '250.5'."""
    return _text(units, USDC_DECIMALS)


def price_units(price: Price, name: str = "at") -> int:
    """Returns a positive price with the oracle's 8 decimals. Raises ValidationError instead of rounding."""
    return _units(price, name, PRICE_DECIMALS)


def price_text(units: int) -> str:
    """Formats a price with 8 decimals: 12050000000 becomes '120.5'."""
    return _text(units, PRICE_DECIMALS)


def _units(amount: str | Decimal | int, name: str, decimals: int) -> int:
    if isinstance(amount, bool) or not isinstance(amount, str | Decimal | int):
        raise ValidationError(
            "INVALID_AMOUNT",
            f"{name} is a {type(amount).__name__}; pass text such as '250.5', a Decimal or an int.",
        )
    text = _plain(amount) if isinstance(amount, Decimal) else str(amount)
    if not _DECIMAL.fullmatch(text):
        raise ValidationError("INVALID_AMOUNT", f"{name} is {text!r}; pass a decimal number such as '250.5'.")
    whole, _, fraction = text.partition(".")
    if len(fraction) > decimals:
        raise ValidationError("INVALID_AMOUNT", f"{name} is {text}; it can have at most {decimals} decimals.")
    units = int(whole + fraction.ljust(decimals, "0"))
    if units == 0:
        raise ValidationError("INVALID_AMOUNT", f"{name} is {text}; it must be positive.")
    return units


def _plain(amount: Decimal) -> str:
    """Returns a `Decimal` without exponent and without zeros at its end, which are no more precise."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _text(units: int, decimals: int) -> str:
    whole, fraction = divmod(units, 10**decimals)
    digits = str(fraction).rjust(decimals, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def bps(share: Percent, name: str, least: int = 1, most: int = 10_000) -> int:
    """Returns a share in basis points. `"8%"` is 800; an int is basis points already."""
    if isinstance(share, str):
        match = _PERCENT.fullmatch(share.strip())
        if match is None:
            raise ValidationError(
                "INVALID_REQUEST",
                f"{name} is {share!r}; pass a percentage such as '8%' or basis points as an int.",
            )
        value = int(Decimal(match[1]) * 100)
    elif isinstance(share, int) and not isinstance(share, bool):
        value = share
    else:
        raise ValidationError("INVALID_REQUEST", f"{name} is a {type(share).__name__}; pass '8%' or an int.")
    if not least <= value <= most:
        raise ValidationError("INVALID_REQUEST", f"{name} is {value} basis points; pass {least} to {most}.")
    return value


def digits(value: Integer, name: str) -> str:
    """Returns the decimal digits of a whole number. Raises ValidationError for any other spelling."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return str(int(value))
    raise ValidationError("INVALID_REQUEST", f"{name} is {value!r}; pass an int or its digits.")
