"""How a handler says that it did not succeed.

A handler succeeds by returning a value. Any other exception than these is a failure that is tried again, as `Retryable` is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lockgate._units import millis


class AttemptOutcome(Exception):
    """The root of the exceptions that end an attempt in a way of their own."""

    def ending(self) -> dict[str, Any]:
        """The outcome in the words of the Rust core."""
        raise NotImplementedError


class Retryable(AttemptOutcome):
    """Another attempt may succeed: after `after` seconds at the earliest, or when the server's backoff says.

    `code` names what went wrong in a word that retry policies can list as not to be tried again.
    """

    def __init__(self, message: str, *, after: float | timedelta | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.after = after
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), (self.message,), {"after": self.after, "code": self.code})

    def ending(self) -> dict[str, Any]:
        after_ms = None if self.after is None else millis(self.after, "after")
        return {"kind": "retryable", "message": self.message, "after_ms": after_ms, "code": self.code}


class Fatal(AttemptOutcome):
    """No attempt can succeed: the job becomes a dead letter now."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def ending(self) -> dict[str, Any]:
        return {"kind": "fatal", "message": self.message}


class Snooze(AttemptOutcome):
    """Not now: run the job again after `delay` seconds. Costs no attempt."""

    def __init__(self, delay: float | timedelta) -> None:
        super().__init__(delay)
        self.delay = delay

    def ending(self) -> dict[str, Any]:
        return {"kind": "snooze", "delay_ms": millis(self.delay, "delay")}


class Cancelled(AttemptOutcome):
    """The handler found that the work is no longer wanted: the job ends as CANCELLED."""

    def __init__(self, note: str = "") -> None:
        super().__init__(note)
        self.note = note

    def ending(self) -> dict[str, Any]:
        return {"kind": "cancelled", "message": self.note}


class AwaitChildren(AttemptOutcome):
    """Not now: run the job again when none of its children is under way. Costs no attempt and holds no slot meanwhile.

    After `timeout` seconds, a day unless said, the job fails, or with `review` a person is asked whether it goes on with what
    there is.
    """

    def __init__(self, timeout: float | timedelta | None = None, *, review: bool = False) -> None:
        super().__init__(timeout)
        self.timeout = timeout
        self.review = review

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), (self.timeout,), {"review": self.review})

    def ending(self) -> dict[str, Any]:
        timeout_ms = None if self.timeout is None else millis(self.timeout, "timeout")
        return {"kind": "await_children", "timeout_ms": timeout_ms, "review": self.review}


def _revive(kind: type[AttemptOutcome], args: tuple[Any, ...], options: dict[str, Any]) -> AttemptOutcome:
    """Outcomes come back from handlers in other processes."""
    return kind(*args, **options)
