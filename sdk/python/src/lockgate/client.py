"""The client for programs without an event loop."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from lockgate import _calls, _core, _native, _read, _results
from lockgate._units import Seconds
from lockgate.errors import LockgateError
from lockgate.jobs import Explanation, Job, JobEvent, LogLine, NewJob, Priority, Progress
from lockgate.records import Approval, ApprovalAnswered, DeadLetter, Page, ReplayCounts, Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lockgate.jobs import JobOptions

T = TypeVar("T")


class Client:
    """Submits jobs to a Lockgate server, and does what people do with jobs. It connects with its first call.

    `url`, `credential`, `tenant`, `actor` and `actor_type` come from `LOCKGATE_SERVER`, `LOCKGATE_API_KEY`, `LOCKGATE_TENANT`,
    `LOCKGATE_ACTOR` and `LOCKGATE_ACTOR_TYPE` unless given, as for the command line.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        credential: str | None = None,
        tenant: str | None = None,
        actor: str | None = None,
        actor_type: str | None = None,
        call_timeout: Seconds | None = None,
        tls_ca: str | os.PathLike[str] | None = None,
        tls_cert: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        insecure_plaintext: bool = False,
    ) -> None:
        access = _core.server_access(url, credential, tls_ca, tls_cert, tls_key, insecure_plaintext)
        self._connection = _native.Connection(_core.client_settings(access, tenant, actor, actor_type, call_timeout))

    def _call(self, operation: _calls.Operation[T]) -> T:
        args = _core.request(operation.args)
        return operation.read(_core.answered(*self._connection.call_blocking(operation.name, args)))

    def submit(self, topic: str, payload: object = None, **options: Unpack[JobOptions]) -> JobHandle:
        """Submits a job. It is stored when this returns."""
        submitted = self._call(_calls.submit(topic, payload, options))
        return JobHandle(self, submitted.id, submitted.existed)

    def submit_many(self, jobs: Iterable[NewJob]) -> list[JobHandle | LockgateError]:
        """Submits many jobs. The answers come in the order given: a handle, or why that one job was refused."""
        answers = self._call(_calls.submit_many(jobs))
        return [one if isinstance(one, LockgateError) else JobHandle(self, one.id, one.existed) for one in answers]

    def job(self, job_id: str) -> JobHandle:
        """A job known by its id. Nothing is asked of the server."""
        return JobHandle(self, job_id, True)

    def get(self, job_id: str) -> Job:
        """Everything about one job."""
        return self._call(_calls.get(job_id))

    def jobs(
        self, topic: str = "", *, labels: Mapping[str, str] | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Job]:
        """A page of the tenant's jobs, of one topic and with all these labels if they are given."""
        return self._call(_calls.list_jobs(topic, labels, limit, cursor))

    def approvals(self, *, limit: int = 50, cursor: str | None = None) -> Page[Approval]:
        """A page of what waits for an approval."""
        return self._call(_calls.approvals(limit, cursor))

    def approve(self, approval: Approval | str, note: str = "") -> ApprovalAnswered:
        """Approves what was read, or with the id of a job what it is now."""
        return self._call(_calls.answer_approval("approve", approval, note))

    def reject(self, approval: Approval | str, note: str = "") -> ApprovalAnswered:
        """Rejects a job that waits for an approval: it ends as DENIED."""
        return self._call(_calls.answer_approval("reject", approval, note))

    def dead_letters(
        self,
        *,
        topic: str | None = None,
        priority: Priority | None = None,
        reason: str | None = None,
        labels: Mapping[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[DeadLetter]:
        """A page of the jobs that ended badly."""
        return self._call(_calls.dead_letters(topic, priority, reason, labels, limit, cursor))

    def replay(self, job_id: str) -> ReplayCounts:
        """Gives a dead job a new life."""
        return self._call(_calls.replay(job_id))

    def replay_all(
        self,
        *,
        topic: str | None = None,
        priority: Priority | None = None,
        reason: str | None = None,
        labels: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> ReplayCounts:
        """Gives all dead jobs that meet the conditions a new life, or with `dry_run` only says which."""
        return self._call(_calls.replay_all(topic, priority, reason, labels, dry_run))

    def put_dag(self, text: str) -> int:
        """Checks a workflow in YAML and stores it as the next version of its name; the version."""
        return self._call(_calls.put_dag(text))

    def start_dag(
        self,
        dag: str,
        params: object = None,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        fresh: bool = False,
    ) -> RunHandle:
        """Starts a run of a workflow. With `fresh` no stored result of equal work is used again."""
        started = self._call(_calls.start_dag(dag, params, version, idempotency_key, fresh))
        return RunHandle(self, started.id, started.existed)

    def run(self, run_id: str) -> RunHandle:
        """A run known by its id. Nothing is asked of the server."""
        return RunHandle(self, run_id, True)


class JobHandle:
    """A job that was submitted, or one that is known by its id. `existed`: the submit found it under its id or key."""

    def __init__(self, client: Client, job_id: str, existed: bool) -> None:
        self._client = client
        self.id = job_id
        self.existed = existed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def get(self) -> Job:
        """Everything about the job."""
        return self._client._call(_calls.get(self.id))

    def wait(self, *, timeout: Seconds | None = None) -> Job:
        """Waits until the job has ended, also over a restart of the server."""
        return self._client._call(_calls.wait(self.id, timeout))

    @overload
    def result(self, *, timeout: Seconds | None = None) -> Any: ...
    @overload
    def result(self, into: type[T], *, timeout: Seconds | None = None) -> T: ...
    def result(self, into: Any = None, *, timeout: Seconds | None = None) -> Any:
        """Waits for the job and returns its result, read as `into` if given. Raises `JobFailed` if it did not succeed."""
        return _results.of_job(self.wait(timeout=timeout), into)

    def watch(self, *, after: int = 0) -> Iterator[JobEvent | Progress]:
        """What happens to the job, from the event after this number until it ends."""
        watch = self._client._connection.watch(self.id, after)
        while (told := _core.answered(*watch.next_blocking())) is not None:
            yield _read.update(told)

    def cancel(self, reason: str = "") -> str:
        """Cancels the job; its state afterwards."""
        return self._client._call(_calls.cancel(self.id, reason))

    def why(self) -> Explanation:
        """Why the job is in its state."""
        return self._client._call(_calls.why(self.id))

    def logs(self, *, after: int = 0) -> list[LogLine]:
        """The last 1,000 lines of its log with a number greater than `after`."""
        return self._client._call(_calls.logs(self.id, after))


class RunHandle:
    """A run that was started, or one that is known by its id. `existed`: its idempotency key had started it before."""

    def __init__(self, client: Client, run_id: str, existed: bool) -> None:
        self._client = client
        self.id = run_id
        self.existed = existed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def get(self) -> Run:
        """The run with all its nodes."""
        return self._client._call(_calls.get_run(self.id))

    def wait(self, *, timeout: Seconds | None = None) -> Run:
        """Waits until the run is over, also over a restart of the server."""
        return self._client._call(_calls.wait_run(self.id, timeout))

    @overload
    def result(self, *, timeout: Seconds | None = None) -> Any: ...
    @overload
    def result(self, into: type[T], *, timeout: Seconds | None = None) -> T: ...
    def result(self, into: Any = None, *, timeout: Seconds | None = None) -> Any:
        """Waits for the run and returns its output, read as `into` if given. Raises `RunFailed` if it did not succeed."""
        return _results.of_run(self.wait(timeout=timeout), into)

    def cancel(self, reason: str = "", *, compensate: bool = False) -> str:
        """Cancels the run; with `compensate` its finished work is undone. Its state afterwards."""
        return self._client._call(_calls.cancel_run(self.id, reason, compensate))
