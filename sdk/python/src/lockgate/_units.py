"""Spans of time, in seconds or as `timedelta`, on their way to the server, which counts milliseconds."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

Seconds = float | timedelta


def millis(span: Seconds, name: str) -> int:
    """Milliseconds, rounded up so that a short span is not none."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e12:
        raise ValueError(f"{name} must be seconds from 0 up, or a timedelta, not {span!r}")
    return math.ceil(seconds * 1000)


def unix_millis(at: datetime, name: str) -> int:
    """Milliseconds since 1970."""
    if at.tzinfo is None:
        raise ValueError(f"{name} must have a time zone, such as datetime.now(timezone.utc)")
    return int(at.timestamp() * 1000)
