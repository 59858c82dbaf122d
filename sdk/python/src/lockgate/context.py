"""What a handler knows of the attempt it runs, and what it can tell and ask the server meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lockgate import _core, _native, _read
from lockgate.jobs import Child, ChildOutcome


@dataclass(frozen=True)
class Gathered:
    """The job waited for its children and was called again: how often, and whether a person cut the last wait short."""

    rounds: int
    partial: bool


@dataclass(frozen=True)
class _Info:
    tenant: str
    trace_id: str
    traceparent: str | None
    labels: dict[str, str]
    env: dict[str, str]
    may_use_network: bool
    may_exec: bool
    gathered_rounds: int
    gathered_partly: bool


class AttemptContext:
    """What both kinds of handlers know of their attempt."""

    def __init__(self, attempt: _native.Attempt) -> None:
        self._attempt = attempt

    @cached_property
    def _info(self) -> _Info:
        return _Info(**json.loads(self._attempt.info()))

    @property
    def job_id(self) -> str:
        return self._attempt.job_id

    @property
    def topic(self) -> str:
        return self._attempt.topic

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1. It grows over retries, losses and replays."""
        return self._attempt.attempt

    @property
    def tenant(self) -> str:
        return self._info.tenant

    @property
    def labels(self) -> dict[str, str]:
        return self._info.labels

    @property
    def env(self) -> dict[str, str]:
        return self._info.env

    @property
    def trace_id(self) -> str:
        return self._info.trace_id

    @property
    def traceparent(self) -> str | None:
        """W3C trace context for whatever the handler calls. None if the job is not traced."""
        return self._info.traceparent

    @property
    def may_use_network(self) -> bool:
        """Whether policy lets this attempt open connections."""
        return self._info.may_use_network

    @property
    def may_exec(self) -> bool:
        """Whether policy lets this attempt start programs."""
        return self._info.may_exec

    @property
    def gathered(self) -> Gathered | None:
        """Whether the job waited for its children and was called again, in this life."""
        rounds = self._info.gathered_rounds
        return Gathered(rounds, self._info.gathered_partly) if rounds else None

    @property
    def is_cancelled(self) -> bool:
        """Whether the attempt no longer counts. Whatever the handler returns then is not taken."""
        return self._attempt.is_cancelled

    def progress(self, percent: int, message: str = "") -> None:
        """Tells watchers how far the job is, 0 to 100."""
        self._attempt.progress(max(0, min(100, int(percent))), message)

    def log(self, line: str) -> None:
        """Adds a line to the job's log."""
        self._attempt.log(line)


class Context(AttemptContext):
    """The context of an `async def` handler. When the attempt no longer counts, the handler gets `asyncio.CancelledError`."""

    async def _call(self, operation: str, args: dict[str, Any]) -> Any:
        text = _core.request(args)
        return await _core.awaited(lambda done: self._attempt.call(operation, text, done))

    async def submit_children(self, children: Iterable[Child]) -> list[str]:
        """Submits children of this job; their ids in the order given. The same key again is the same child.

        Children do not hold the job up: `raise AwaitChildren()` to be called again after them.
        """
        ids: list[str] = await self._call("submit_children", _children_args(children))
        return ids

    async def children(self) -> list[ChildOutcome]:
        """What became of the children of this life of the job, also of those still under way."""
        return _read.many(ChildOutcome)(await self._call("children", {}))

    async def check(
        self, *, tool: str | None = None, url: str | None = None, command: str | None = None, detail: object = None
    ) -> None:
        """Asks policy whether this attempt may call a tool, open an address or run a command. Raises `Fatal` if it may not."""
        await self._call("check", _check_args(tool, url, command, detail))


class SyncContext(AttemptContext):
    """The context of a plain function, which runs in a thread of its own.

    A thread cannot be stopped from outside: a function that takes long looks at `cancelled`, an event that is set when the attempt
    no longer counts, or waits on it instead of sleeping.
    """

    def __init__(self, attempt: _native.Attempt) -> None:
        super().__init__(attempt)
        self.cancelled = threading.Event()

    def _call(self, operation: str, args: dict[str, Any]) -> Any:
        return _core.answered(*self._attempt.call_blocking(operation, _core.request(args)))

    def submit_children(self, children: Iterable[Child]) -> list[str]:
        """Submits children of this job; their ids in the order given. The same key again is the same child."""
        ids: list[str] = self._call("submit_children", _children_args(children))
        return ids

    def children(self) -> list[ChildOutcome]:
        """What became of the children of this life of the job, also of those still under way."""
        return _read.many(ChildOutcome)(self._call("children", {}))

    def check(
        self, *, tool: str | None = None, url: str | None = None, command: str | None = None, detail: object = None
    ) -> None:
        """Asks policy whether this attempt may call a tool, open an address or run a command. Raises `Fatal` if it may not."""
        self._call("check", _check_args(tool, url, command, detail))


current: ContextVar[AttemptContext] = ContextVar("lockgate_attempt")
"""The attempt that the running code belongs to, for the bridge from `logging`."""


def _children_args(children: Iterable[Child]) -> dict[str, Any]:
    return {"children": [{"key": child.key, "job": child.to_dict()} for child in children]}


def _check_args(tool: str | None, url: str | None, command: str | None, detail: object) -> dict[str, Any]:
    said = [(kind, value) for kind, value in (("tool", tool), ("url", url), ("command", command)) if value is not None]
    if len(said) != 1:
        raise TypeError("check takes one of tool, url and command")
    kind, value = said[0]
    return {"kind": kind, "value": value, "detail": detail}
