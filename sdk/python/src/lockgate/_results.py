"""What a caller gets of a job or a run that has ended."""

from __future__ import annotations

from typing import Any

from lockgate import _decode
from lockgate.errors import JobFailed, LockgateError, NotAllowed, RunFailed
from lockgate.jobs import Job
from lockgate.records import Run


def of_job(job: Job, into: Any) -> Any:
    """The result of a job that succeeded, read as a type if one is given."""
    if not job.succeeded:
        raise JobFailed.of(job)
    if job.payload_hidden:
        step = "give the client a credential with --payloads"
        raise NotAllowed(f"the result of job {job.job_id} is hidden", code="payload_hidden", next_step=step)
    return _read(job.result, into, f"the result of job {job.job_id}")


def of_run(run: Run, into: Any) -> Any:
    """The output of a run that succeeded, read as a type if one is given."""
    if not run.succeeded:
        why = f": {run.reason}: {run.message}" if run.reason else ""
        step = f"`lockgate dag get {run.run_id}` shows its nodes"
        raise RunFailed(f"run {run.run_id} ended as {run.state}{why}", code="run_failed", next_step=step)
    return _read(run.output, into, f"the output of run {run.run_id}")


def _read(value: Any, into: Any, what: str) -> Any:
    if into is None:
        return value
    try:
        return _decode.reader(into, ignore_unknown=True)(value, "")
    except _decode.Misfit as misfit:
        raise LockgateError(f"{what}: {misfit}", code="unexpected_result", next_step="read it as another type") from None
