"""Values of a program as JSON."""

from __future__ import annotations

import dataclasses
import json
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID


def to_json(value: object) -> str:
    """The JSON text of a value: plain data, dataclasses, pydantic models, enums, dates, UUIDs, decimals and paths.

    Raises `ValueError` or `TypeError` for what has no JSON form.
    """
    text = json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not text.isascii():
        # Half of a surrogate pair is no text elsewhere.
        text.encode()
    return text


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal, PurePath)):
        return str(value)
    raise TypeError(
        f"a value of type {type(value).__name__} has no JSON form; use plain data, a dataclass or a pydantic model"
    )
