"""Candles, statistics and positions as rows of a table, or as a pandas frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .arguments import checked
from .errors import ValidationError

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]

_CANDLES = {"t": "time", "o": "open", "h": "high", "l": "low", "c": "close", "n": "posts"}
_TIMES = ("time", "timestamp", "day")
_TEXTS = ("symbol", "name", "note")
_INTEGER = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+\.\d+")


@checked
def rows(table: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Row]:
    """
    Returns a table of an answer as rows: its candles (`answer["candles"]`), a list such as `answer["points"]` or
    `answer["positions"]`, or one record such as statistics. Digits become int, decimals `Decimal`; the units stay those
    of the API: USDC in base units, time in Unix seconds.
    """
    if isinstance(table, Mapping) and set(table) == set(_CANDLES):
        columns = [table[name] for name in _CANDLES]
        table = [dict(zip(_CANDLES.values(), values, strict=True)) for values in zip(*columns, strict=True)]
    records = [table] if isinstance(table, Mapping) else table
    if isinstance(records, str) or not all(isinstance(record, Mapping) for record in records):
        raise ValidationError(
            "INVALID_REQUEST",
            f"A {type(table).__name__} is no table; pass candles, a list of records or a record of an answer.",
        )
    return [{name: _value(name, value) for name, value in record.items()} for record in records]


@checked
def frame(table: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    """
    Returns the rows of a table as a pandas frame for analysis: prices as float64, indexed by UTC time where rows have
    one. Needs the extra `pandas`. Compute amounts to sign from `rows`, which are exact.
    """
    import pandas

    made = pandas.DataFrame([{name: _analysed(value) for name, value in row.items()} for row in rows(table)])
    for name in _TIMES:
        if name in made:
            made[name] = pandas.to_datetime(made[name], unit="s", utc=True)
            return made.set_index(name)
    return made


def _value(name: str, value: Any) -> Any:
    if not isinstance(value, str) or name in _TEXTS:
        return value
    if _INTEGER.fullmatch(value):
        return int(value)
    return Decimal(value) if _DECIMAL.fullmatch(value) else value


def _analysed(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
