"""What the server says of workflows, approvals and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Page(Sequence[T], Generic[T]):
    """Part of a list. `next_cursor` asks for the part after it; None: this was the last one."""

    def __init__(self, items: list[T], next_cursor: str | None) -> None:
        self._items = items
        self.next_cursor = next_cursor

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        return self._items[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"Page({self._items!r}, next_cursor={self.next_cursor!r})"


@dataclass(frozen=True)
class Approval:
    """A job that waits for people."""

    job_id: str
    topic: str
    submitter: str
    payload: Any
    payload_hidden: bool
    labels: dict[str, str]
    rule: str
    reason: str
    request_hash: str
    rule_hash: str
    approvers_needed: int
    approved_by: tuple[str, ...]
    asked_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True)
class ApprovalAnswered:
    """Where a job stands after an answer."""

    job_id: str
    state: str
    approved_by: tuple[str, ...]
    approvers_needed: int


@dataclass(frozen=True)
class DeadLetter:
    """A job that ended badly and can be replayed."""

    job_id: str
    tenant: str
    topic: str
    priority: str
    state: str
    reason: str
    message: str
    attempts: int
    life: int
    at: datetime
    labels: dict[str, str]


@dataclass(frozen=True)
class ReplayCounts:
    """What a replay did: how many dead letters were meant, and how many jobs have a new life."""

    matched: int
    replayed: int
    job_ids: tuple[str, ...]
    no_room: int
    left_out: int


@dataclass(frozen=True)
class Node:
    """A node of a run. `item` is its index within a `for_each` node."""

    name: str
    item: int | None
    state: str
    topic: str
    job_id: str
    reason: str
    message: str
    output: Any


@dataclass(frozen=True)
class Run:
    """A run of a workflow and what became of it."""

    run_id: str
    dag: str
    dag_version: int
    tenant: str
    actor: str
    state: str
    params: Any
    output: Any
    reason: str
    message: str
    began_at: datetime
    ended_at: datetime | None
    done: int
    total: int
    nodes: tuple[Node, ...]

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    @property
    def succeeded(self) -> bool:
        return self.state in ("SUCCEEDED", "SUCCEEDED_WITH_FAILURES")

    def node(self, name: str) -> Node:
        """The node of this name."""
        return next(node for node in self.nodes if node.name == name and node.item is None)
