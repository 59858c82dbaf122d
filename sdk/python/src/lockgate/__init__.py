"""Lockgate: jobs, agent actions and workflows under policy.

    from lockgate import Client, Worker

    worker = Worker("http://127.0.0.1:8080")

    @worker.handler("greet")
    async def greet(name: str) -> str:
        return f"hello {name}"

    worker.run()

Elsewhere: `Client().submit("greet", "ann").result()`.
"""

from lockgate._native import VERSION as __version__
from lockgate.async_client import AsyncClient, AsyncJobHandle, AsyncRunHandle
from lockgate.client import Client, JobHandle, RunHandle
from lockgate.context import Context, Gathered, SyncContext
from lockgate.errors import (
    Busy,
    CallTimeout,
    Conflict,
    FieldError,
    ForkError,
    InternalError,
    InvalidRequest,
    JobFailed,
    LockgateError,
    NotAllowed,
    NotFound,
    RunFailed,
    ServerFailure,
    ServerUnreachable,
    SetupError,
)
from lockgate.jobs import (
    AttemptRecord,
    Child,
    ChildOutcome,
    Explanation,
    Job,
    JobEvent,
    JobFailure,
    JobOptions,
    LogLine,
    NewJob,
    Priority,
    Progress,
    Retries,
)
from lockgate.outcomes import AttemptOutcome, AwaitChildren, Cancelled, Fatal, Retryable, Snooze
from lockgate.records import Approval, ApprovalAnswered, DeadLetter, Node, Page, ReplayCounts, Run
from lockgate.worker import Worker

__all__ = [
    "Approval",
    "ApprovalAnswered",
    "AsyncClient",
    "AsyncJobHandle",
    "AsyncRunHandle",
    "AttemptOutcome",
    "AttemptRecord",
    "AwaitChildren",
    "Busy",
    "CallTimeout",
    "Cancelled",
    "Child",
    "ChildOutcome",
    "Client",
    "Conflict",
    "Context",
    "DeadLetter",
    "Explanation",
    "Fatal",
    "FieldError",
    "ForkError",
    "Gathered",
    "InternalError",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobFailed",
    "JobFailure",
    "JobHandle",
    "JobOptions",
    "LockgateError",
    "LogLine",
    "NewJob",
    "Node",
    "NotAllowed",
    "NotFound",
    "Page",
    "Priority",
    "Progress",
    "ReplayCounts",
    "Retries",
    "Retryable",
    "Run",
    "RunFailed",
    "RunHandle",
    "ServerFailure",
    "ServerUnreachable",
    "SetupError",
    "Snooze",
    "SyncContext",
    "Worker",
    "__version__",
]
