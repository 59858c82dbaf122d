"""Every call that a client can make: its name, its arguments and how its answer is read. Both clients make these calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lockgate import _read
from lockgate._units import Seconds, millis
from lockgate.errors import LockgateError, from_fault
from lockgate.jobs import Explanation, Job, LogLine, NewJob, Priority
from lockgate.records import Approval, ApprovalAnswered, DeadLetter, Page, ReplayCounts, Run

if TYPE_CHECKING:
    from lockgate.jobs import JobOptions

T = TypeVar("T")


@dataclass(frozen=True)
class Operation(Generic[T]):
    """One call."""

    name: str
    args: dict[str, Any]
    read: Callable[[Any], T]


@dataclass(frozen=True)
class Submitted:
    """The id of a job or a run, and whether it was there before."""

    id: str
    existed: bool


def _submitted(answer: dict[str, Any]) -> Submitted:
    return Submitted(answer["job_id"], answer["existing"])


def _of_batch(answers: list[dict[str, Any]]) -> list[Submitted | LockgateError]:
    def one(answer: dict[str, Any]) -> Submitted | LockgateError:
        if "job" in answer:
            return _submitted(answer["job"])
        error = from_fault(answer["error"])
        assert isinstance(error, LockgateError), error
        return error

    return [one(answer) for answer in answers]


def _state(answer: str) -> str:
    return answer


def submit(topic: str, payload: object, options: JobOptions) -> Operation[Submitted]:
    return Operation("submit", {"job": NewJob(topic, payload, **options).to_dict()}, _submitted)


def submit_many(jobs: Iterable[NewJob]) -> Operation[list[Submitted | LockgateError]]:
    return Operation("submit_many", {"jobs": [job.to_dict() for job in jobs]}, _of_batch)


def get(job_id: str) -> Operation[Job]:
    return Operation("get", {"job_id": job_id}, _read.record(Job))


def list_jobs(topic: str, labels: Mapping[str, str] | None, limit: int, cursor: str | None) -> Operation[Page[Job]]:
    args = {"topic": topic, "labels": dict(labels or {}), "limit": limit, "cursor": cursor or ""}
    return Operation("list", args, _read.page(Job))


def wait(job_id: str, timeout: Seconds | None) -> Operation[Job]:
    return Operation("wait", {"job_id": job_id, "within_ms": _within(timeout)}, _read.record(Job))


def cancel(job_id: str, reason: str) -> Operation[str]:
    return Operation("cancel", {"job_id": job_id, "reason": reason}, _state)


def why(job_id: str) -> Operation[Explanation]:
    return Operation("why", {"job_id": job_id}, _read.record(Explanation))


def logs(job_id: str, after: int) -> Operation[list[LogLine]]:
    return Operation("logs", {"job_id": job_id, "after": after}, _read.many(LogLine))


def approvals(limit: int, cursor: str | None) -> Operation[Page[Approval]]:
    return Operation("approvals", {"limit": limit, "cursor": cursor or ""}, _read.page(Approval))


def answer_approval(word: str, of: Approval | str, note: str) -> Operation[ApprovalAnswered]:
    args: dict[str, Any] = {"job_id": of, "note": note}
    if isinstance(of, Approval):
        # Bound to what was read: a changed request or rule is refused.
        args = {
            "job_id": of.job_id,
            "note": note,
            "request_hash": of.request_hash,
            "rule_hash": of.rule_hash,
            "acknowledge_hidden": of.payload_hidden,
        }
    return Operation(word, args, _read.record(ApprovalAnswered))


def _filter(
    topic: str | None, priority: Priority | None, reason: str | None, labels: Mapping[str, str] | None
) -> dict[str, Any]:
    return {"topic": topic, "priority": priority, "reason": reason, "labels": dict(labels or {})}


def dead_letters(
    topic: str | None,
    priority: Priority | None,
    reason: str | None,
    labels: Mapping[str, str] | None,
    limit: int,
    cursor: str | None,
) -> Operation[Page[DeadLetter]]:
    args = {"filter": _filter(topic, priority, reason, labels), "limit": limit, "cursor": cursor or ""}
    return Operation("dead_letters", args, _read.page(DeadLetter))


def replay(job_id: str) -> Operation[ReplayCounts]:
    return Operation("replay", {"job_id": job_id}, _read.record(ReplayCounts))


def replay_all(
    topic: str | None, priority: Priority | None, reason: str | None, labels: Mapping[str, str] | None, dry_run: bool
) -> Operation[ReplayCounts]:
    args = {"filter": _filter(topic, priority, reason, labels), "dry_run": dry_run}
    return Operation("replay_all", args, _read.record(ReplayCounts))


def put_dag(text: str) -> Operation[int]:
    def version(answer: list[Any]) -> int:
        stored: int = answer[1]
        return stored

    return Operation("put_dag", {"text": text}, version)


def start_dag(
    dag: str, params: object, version: int | None, idempotency_key: str | None, fresh: bool
) -> Operation[Submitted]:
    run = {"dag": dag, "params": params, "version": version, "idempotency_key": idempotency_key, "fresh": fresh}
    return Operation("start_dag", {"run": run}, _submitted)


def get_run(run_id: str) -> Operation[Run]:
    return Operation("get_run", {"run_id": run_id}, _read.record(Run))


def wait_run(run_id: str, timeout: Seconds | None) -> Operation[Run]:
    return Operation("wait_run", {"run_id": run_id, "within_ms": _within(timeout)}, _read.record(Run))


def cancel_run(run_id: str, reason: str, compensate: bool) -> Operation[str]:
    return Operation("cancel_run", {"run_id": run_id, "reason": reason, "compensate": compensate}, _state)


def _within(timeout: Seconds | None) -> int | None:
    return None if timeout is None else millis(timeout, "timeout")
