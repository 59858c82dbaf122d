"""Answers of the Rust core as values of this package."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, TypeVar

from lockgate.jobs import AttemptRecord, Job, JobEvent, JobFailure, Progress
from lockgate.records import Node, Page, Run

T = TypeVar("T")


def record(kind: type[T]) -> Callable[[dict[str, Any]], T]:
    """A function that makes a dataclass of an answer. Times come as milliseconds, in fields that end in `_ms`."""

    def read(answer: dict[str, Any]) -> T:
        return _made(kind, answer)

    return read


def page(kind: type[T]) -> Callable[[dict[str, Any]], Page[T]]:
    return lambda answer: Page([_made(kind, item) for item in answer["items"]], answer["next"])


def many(kind: type[T]) -> Callable[[list[dict[str, Any]]], list[T]]:
    return lambda answer: [_made(kind, item) for item in answer]


def update(answer: dict[str, Any]) -> JobEvent | Progress:
    """An update of a watch: an event or a progress report."""
    return _made(JobEvent, answer) if answer["type"] == "event" else _made(Progress, answer)


def _job(answer: dict[str, Any]) -> dict[str, Any]:
    last_error, progress = answer["last_error"], answer["progress"]
    return answer | {
        "last_error": last_error and JobFailure(**last_error),
        "progress": progress and _made(Progress, progress),
        "history": [_made(AttemptRecord, one) for one in answer["history"]],
    }


def _run(answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"nodes": [_made(Node, one) for one in answer["nodes"]]}


_INNER: dict[type, Callable[[dict[str, Any]], dict[str, Any]]] = {Job: _job, Run: _run}


def _made(kind: type[T], answer: dict[str, Any]) -> T:
    if kind in _INNER:
        answer = _INNER[kind](answer)
    values: dict[str, Any] = {}
    for name, source in _sources(kind):
        value = answer[source]
        if source.endswith("_ms"):
            value = None if value is None else datetime.fromtimestamp(value / 1000, timezone.utc)
        elif isinstance(value, list) and name not in _ANY_JSON:
            value = tuple(value)
        values[name] = value
    return kind(**values)


_ANY_JSON = ("payload", "result", "params", "output")


_SOURCES: dict[Any, tuple[tuple[str, str], ...]] = {}


def _sources(kind: Any) -> tuple[tuple[str, str], ...]:
    """The fields of a dataclass, and where each is in the answer."""
    if kind not in _SOURCES:
        names = [field.name for field in dataclasses.fields(kind)]
        _SOURCES[kind] = tuple((name, f"{name}_ms" if _is_time(name) else name) for name in names)
    return _SOURCES[kind]


def _is_time(name: str) -> bool:
    return name in ("at", "until") or name.endswith("_at")
