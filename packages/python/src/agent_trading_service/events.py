"""Reads server-sent events and resumes by id after a dropped connection, without loss or repetition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    id: str
    type: str
    """Such as trade, exit, ladder, intent, mandate, risk, price-stale, price-fresh, corporateAction, reorg."""
    data: dict[str, Any]


class EventParser:
    """Turns lines of an event stream into events.

    `last_id` also follows the positions of the stream, which are no events.
    """

    def __init__(self, last_id: str | None) -> None:
        self.last_id = last_id
        self._id: str | None = None
        self._type = "message"
        self._data: list[str] = []

    def feed(self, line: str) -> Iterator[Event]:
        """Takes one line without its end; yields the event that an empty line completes."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self._id = value
            elif name == "event":
                self._type = value
            elif name == "data":
                self._data.append(value)
            return
        if self._id is not None:
            self.last_id = self._id
        if self._data and self._type != "position":
            yield Event(self.last_id or "", self._type, json.loads("\n".join(self._data)))
        self._type, self._data = "message", []
