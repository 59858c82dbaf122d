"""The first minutes of a user, with a client that was generated from /openapi.json."""

import sys
import time

from lockgate_client import AuthenticatedClient
from lockgate_client.api.jobs import explain_job, get_job, list_jobs, submit_job
from lockgate_client.models import Job, JobList, JobState, NewJob, Submitted, Why


def finished(client: AuthenticatedClient, job_id: str) -> Job:
    for _ in range(100):
        job = get_job.sync(job_id, client=client)
        assert isinstance(job, Job), job
        if job.state == JobState.SUCCEEDED:
            return job
        time.sleep(0.05)
    raise TimeoutError(f"job {job_id} has not succeeded within 5 s")


def main() -> None:
    # This server asks for no credential, and ignores one that is sent.
    client = AuthenticatedClient(base_url=sys.argv[1], token="none")
    submitted = submit_job.sync(client=client, body=NewJob(topic="job.echo", payload={"hello": "world"}))
    assert isinstance(submitted, Submitted), submitted
    job = finished(client, submitted.job_id)
    assert job.result == {"hello": "world"}, job
    # No worker has it, so the job waits and says why.
    waiting = submit_job.sync(client=client, body=NewJob(topic="job.echo", requires=["gpu"]))
    assert isinstance(waiting, Submitted), waiting
    why = explain_job.sync(waiting.job_id, client=client)
    assert isinstance(why, Why) and why.reason == "no_workers", why
    jobs = list_jobs.sync(client=client, state=JobState.SCHEDULED)
    assert isinstance(jobs, JobList) and [job.job_id for job in jobs.jobs] == [waiting.job_id], jobs
    print("python: submitted, read, explained, listed")


main()
