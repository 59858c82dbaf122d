"""Jobs: what is said of one when it is submitted, and what the server says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from lockgate._units import Seconds, millis, unix_millis

if TYPE_CHECKING:
    from typing_extensions import Unpack

Priority = Literal["critical", "high", "default", "low"]


class Retries(TypedDict, total=False):
    """How failed and lost attempts are tried again. What is absent is as the topic or the installation has it."""

    base: Seconds
    """Wait after the first failure."""
    factor: float
    """Each wait is so many times the one before it, 1 to 10."""
    cap: Seconds
    """Longest wait."""
    jitter_percent: int
    """Up to this share of a wait is added to it at random."""
    total: Seconds
    """No retry is planned for later than this after the submit."""
    non_retryable: Sequence[str]
    """Codes of failures that are not tried again."""
    losses: int
    """Attempts that workers, servers and networks may lose."""


class JobOptions(TypedDict, total=False):
    """What can be said of a job beside its topic and its payload. Spans are in seconds or `timedelta`."""

    idempotency_key: str
    """A repeated submit with this key answers with the job it made first."""
    job_id: str
    """The id of the job, instead of one that the server makes."""
    priority: Priority
    """How urgent it is; `default` unless said."""
    labels: Mapping[str, str]
    """For people, filters and policy."""
    env: Mapping[str, str]
    """Variables for the handler."""
    max_attempts: int
    """Attempts that may fail before the job fails."""
    retry: Retries
    """How attempts are tried again."""
    timeout: Seconds
    """How long one attempt may run."""
    deadline: Seconds
    """How long after the submit the job must have ended, whatever its state."""
    delay: Seconds
    """Start no sooner than this from now."""
    not_before: datetime
    """Start no sooner than this."""
    requires: Sequence[str]
    """Capabilities that the worker must have."""
    capability: str
    """What the job may do, in the words of the policy."""
    risk_tags: Sequence[str]
    """What is risky about it, in the words of the policy."""
    concurrency_key: str
    """Jobs with one key share the limits that `pools.yaml` sets per key."""
    workflow_id: str
    """Workflow that the job is part of: its jobs are undone together."""
    compensation: object
    """What undoes the job's work: an object with `topic` and, if needed, `payload`."""
    traceparent: str
    """W3C trace context that the job belongs to."""


class NewJob:
    """A job to be submitted, for batches."""

    def __init__(self, topic: str, payload: object = None, **options: Unpack[JobOptions]) -> None:
        self._said = {"topic": topic, "payload": payload, **_written(options)}

    def to_dict(self) -> dict[str, Any]:
        """In the words of the Rust core."""
        return self._said


class Child(NewJob):
    """A job to be submitted as a child.

    `key` is what its parent calls it, unique among the children: an attempt that submits it again gets the same child.
    """

    def __init__(self, key: str, topic: str, payload: object = None, **options: Unpack[JobOptions]) -> None:
        super().__init__(topic, payload, **options)
        self.key = key


def _written(options: JobOptions) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, value in options.items():
        if name not in JobOptions.__annotations__:
            raise TypeError(f"{name!r} is no option of a job; there are {', '.join(JobOptions.__annotations__)}")
        if value is None:
            continue
        if name in ("timeout", "deadline"):
            said[f"{name}_ms"] = millis(value, name)  # type: ignore[arg-type]
        elif name == "retry":
            said["retry"] = _retry(value)  # type: ignore[arg-type]
        elif name == "delay":
            span = timedelta(milliseconds=millis(value, name))  # type: ignore[arg-type]
            said["not_before_ms"] = unix_millis(datetime.now(timezone.utc) + span, name)
        elif name == "not_before":
            said["not_before_ms"] = unix_millis(value, name)  # type: ignore[arg-type]
        else:
            said[name] = value
    if "delay" in options and "not_before" in options:
        raise TypeError("delay and not_before both say when the job may start; give one of them")
    return said


def _retry(retries: Retries) -> dict[str, Any]:
    said: dict[str, Any] = dict(retries)
    for name in ("base", "cap", "total"):
        if name in said:
            said[f"{name}_ms"] = millis(said.pop(name), f"retry.{name}")
    if "factor" in said:
        said["factor_percent"] = round(said.pop("factor") * 100)
    return said


@dataclass(frozen=True)
class JobFailure:
    """Why a job failed: a stable code, and words."""

    reason: str
    message: str


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt to run a job."""

    no: int
    worker_id: str
    outcome: str
    reason: str
    message: str
    rule: str
    dispatched_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class Progress:
    """How far a handler says it is."""

    percent: int
    message: str
    at: datetime


@dataclass(frozen=True)
class Job:
    """A job and what became of it. Lists leave out `payload`, `result`, `history` and `progress`."""

    job_id: str
    tenant: str
    actor: str
    actor_verified: bool
    topic: str
    state: str
    priority: str
    labels: dict[str, str]
    idempotency_key: str
    life: int
    attempts: int
    failures: int
    max_attempts: int
    submitted_at: datetime
    due_at: datetime | None
    deadline_at: datetime | None
    ended_at: datetime | None
    last_error: JobFailure | None
    payload: Any
    result: Any
    payload_hidden: bool
    progress: Progress | None
    history: tuple[AttemptRecord, ...]
    parent_job_id: str
    child_key: str
    request_hash: str
    trace_id: str
    rule: str

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    @property
    def succeeded(self) -> bool:
        return self.state == "SUCCEEDED"


@dataclass(frozen=True)
class JobEvent:
    """One event in the history of a job. What does not apply to the kind is empty."""

    n: int
    kind: str
    at: datetime
    attempt: int
    worker_id: str
    reason: str
    message: str
    until: datetime | None
    actor: str
    rule: str


@dataclass(frozen=True)
class Explanation:
    """Why a job is in its state, and what would change it."""

    state: str
    summary: str
    reason: str
    next_step: str
    next_at: datetime | None
    rule: str


@dataclass(frozen=True)
class LogLine:
    """One line of a job's log."""

    no: int
    attempt: int
    at: datetime
    line: str


@dataclass(frozen=True)
class ChildOutcome:
    """What became of a child. `result` is None unless it succeeded and policy has released its result."""

    key: str
    job_id: str
    state: str
    reason: str | None
    message: str | None
    result: Any

    @property
    def succeeded(self) -> bool:
        return self.state == "SUCCEEDED"
