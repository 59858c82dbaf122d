"""What can go wrong, by what the caller can do about it.

Every error has a stable `code` for programs and a `next_step` for people. The exceptions that a *handler* raises are in
`lockgate.outcomes`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate import outcomes

if TYPE_CHECKING:
    from lockgate.jobs import Job


class LockgateError(Exception):
    """The root of all errors of this package."""

    def __init__(self, message: str, *, code: str = "", next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}; next step: {self.next_step}" if self.next_step else self.message


class SetupError(LockgateError):
    """The program must be changed: no address, a handler that cannot be registered, a file that is missing."""


class ForkError(SetupError):
    """The process was forked while lockgate was in use. Its threads are not in the fork."""


class ServerUnreachable(LockgateError, ConnectionError):
    """The server never answered. The same call may succeed later."""


class CallTimeout(LockgateError, TimeoutError):
    """The server did not answer in time, or a job did not end in time. What was asked for may have been done."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request."""

    field: str
    message: str


class InvalidRequest(LockgateError, ValueError):
    """The request must be changed. `fields` says where, if the server did."""

    fields: tuple[FieldError, ...] = ()


class NotFound(LockgateError, LookupError):
    """There is no such job, run, workflow or dead letter of this tenant."""


class Conflict(LockgateError):
    """The state of the job or run does not allow it, or the key or id stands for something else."""


class NotAllowed(LockgateError, PermissionError):
    """The credential is missing, no longer good, or not allowed to do this."""


class Busy(LockgateError):
    """Not now. `retry_after` is in seconds, if the server knows."""

    retry_after: float | None = None


class ServerFailure(LockgateError):
    """The server failed."""


class InternalError(LockgateError):
    """A defect of this package."""


class JobFailed(LockgateError):
    """The job that was waited for did not succeed. `job` is the job as it ended."""

    job: Job

    @classmethod
    def of(cls, job: Job) -> JobFailed:
        why = f": {job.last_error.reason}: {job.last_error.message}" if job.last_error else ""
        step = f"`lockgate get {job.job_id}` shows its attempts"
        error = cls(f"job {job.job_id} ended as {job.state}{why}", code="job_failed", next_step=step)
        error.job = job
        return error


class RunFailed(LockgateError):
    """The run that was waited for did not succeed."""


_BY_KIND: dict[str, type[LockgateError]] = {
    "setup": SetupError,
    "fork": ForkError,
    "unreachable": ServerUnreachable,
    "timed_out": CallTimeout,
    "invalid": InvalidRequest,
    "not_found": NotFound,
    "conflict": Conflict,
    "not_allowed": NotAllowed,
    "busy": Busy,
    "server": ServerFailure,
}


def from_fault(fault: str | dict[str, Any]) -> Exception:
    """The exception for an error of the Rust core."""
    told: dict[str, Any] = json.loads(fault) if isinstance(fault, str) else fault
    kind, message = told["kind"], told["message"]
    if kind == "fatal":
        return outcomes.Fatal(message)
    if kind == "retryable":
        return outcomes.Retryable(message)
    error = _BY_KIND.get(kind, InternalError)(message, code=told.get("code", kind), next_step=told.get("next_step", ""))
    if isinstance(error, InvalidRequest):
        error.fields = tuple(FieldError(**field) for field in told.get("fields", ()))
    if isinstance(error, Busy) and told.get("retry_after_ms") is not None:
        error.retry_after = told["retry_after_ms"] / 1000
    return error
