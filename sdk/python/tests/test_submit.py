"""Submitting jobs and reading what became of them."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone

import pytest

from lockgate import (
    AsyncClient,
    CallTimeout,
    Client,
    Conflict,
    InvalidRequest,
    JobHandle,
    LockgateError,
    NewJob,
    NotFound,
    Worker,
)
from lockgate.testing import TestServer

from .conftest import PATIENCE, Serve


async def test_a_job_is_submitted_run_and_answered(client: AsyncClient) -> None:
    job = await client.submit("job.echo", {"hello": "world"})
    assert not job.existed
    assert await job.result(timeout=PATIENCE) == {"hello": "world"}
    record = await job.get()
    assert (record.state, record.actor, record.attempts, record.payload) == ("SUCCEEDED", "ann", 1, {"hello": "world"})
    assert record.has_ended and record.ended_at is not None and record.ended_at >= record.submitted_at
    assert record.history[0].outcome == "succeeded"


def test_the_client_without_an_event_loop_does_the_same(server: TestServer) -> None:
    job = Client(server.url).submit("job.echo", [1, 2.5, None, True])
    assert isinstance(job, JobHandle)
    assert job.result(timeout=PATIENCE) == [1, 2.5, None, True]
    assert [update.kind for update in job.watch() if hasattr(update, "kind")][-1] == "succeeded"
    assert job.why().state == "SUCCEEDED"


async def test_a_repeated_submit_with_its_key_is_the_first_job(client: AsyncClient) -> None:
    key = f"order-{uuid.uuid4()}"
    first = await client.submit("job.echo", 1, idempotency_key=key)
    again = await client.submit("job.echo", 1, idempotency_key=key)
    assert (again.id, again.existed) == (first.id, True)
    with pytest.raises(Conflict) as conflict:
        await client.submit("job.echo", 2, idempotency_key=key)
    assert conflict.value.code == "idempotency_conflict"
    assert conflict.value.next_step


async def test_every_option_reaches_the_job(client: AsyncClient) -> None:
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    job_id = f"all-{uuid.uuid4()}"
    job = await client.submit(
        "job.echo",
        None,
        job_id=job_id,
        priority="high",
        labels={"team": "payments"},
        env={"REGION": "eu"},
        max_attempts=5,
        retry={"base": 0.5, "factor": 3, "non_retryable": ["card_declined"], "losses": 2},
        timeout=timedelta(seconds=90),
        deadline=7200,
        not_before=later,
        requires=["gpu"],
        capability="deploy",
        risk_tags=["money"],
        concurrency_key="acme",
    )
    record = await job.get()
    assert job.id == job_id
    assert (record.priority, record.labels, record.max_attempts) == ("high", {"team": "payments"}, 5)
    assert record.due_at is not None and abs(record.due_at - later) < timedelta(seconds=1)
    assert record.deadline_at is not None
    assert (await client.jobs("job.echo", labels={"team": "payments"}))[0].job_id == job_id
    assert await job.cancel("not needed") == "CANCELLED"


async def test_a_delay_is_a_time_from_now(client: AsyncClient) -> None:
    job = await client.submit("job.echo", delay=timedelta(hours=2))
    due = (await job.get()).due_at
    assert due is not None and timedelta(hours=1) < due - datetime.now(timezone.utc) <= timedelta(hours=2)
    assert (await job.why()).summary
    await job.cancel()


async def test_a_batch_is_answered_job_by_job(client: AsyncClient) -> None:
    jobs = [NewJob("job.echo", n) for n in range(50)]
    answers = await client.submit_many([*jobs, NewJob("not a topic")])
    *good, bad = answers
    assert isinstance(bad, InvalidRequest) and "topic" in str(bad)
    results = [await job.result(timeout=PATIENCE) for job in good if not isinstance(job, LockgateError)]
    assert results == list(range(50))


@pytest.mark.parametrize("payload", ["ünïcödé \U0001f600 \u0000 \u2028", {"schlüssel": ["値", "значение"]}, "", {}])
async def test_text_of_every_script_comes_back(client: AsyncClient, payload: object) -> None:
    assert await (await client.submit("job.echo", payload)).result(timeout=PATIENCE) == payload


async def test_a_payload_of_one_mebibyte_is_taken_and_a_larger_one_is_refused(
    client: AsyncClient, worker: Worker, serve: Serve
) -> None:
    @worker.handler("large.echo")
    async def echo(payload: str) -> str:
        return payload

    await serve(worker)
    largest = "x" * (1024 * 1024 - 2)
    assert await (await client.submit("large.echo", largest)).result(timeout=PATIENCE) == largest
    with pytest.raises(InvalidRequest) as refused:
        await client.submit("large.echo", largest + "x")
    assert refused.value.fields[0].field == "payload"


@pytest.mark.parametrize("payload", [object(), float("nan"), {1, 2}, "\ud800", 2**70, b"bytes"])
async def test_what_is_no_json_is_refused_in_words(client: AsyncClient, payload: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await client.submit("job.echo", payload)
    assert refused.value.next_step


async def test_a_request_that_is_wrong_names_its_fields(client: AsyncClient) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await client.submit("no topic", max_attempts=0)
    assert {fault.field for fault in refused.value.fields} >= {"topic", "max_attempts"}


def test_an_option_that_does_not_exist_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="'prio' is no option of a job"):
        NewJob("job.echo", prio="high")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="give one of them"):
        NewJob("job.echo", delay=1, not_before=datetime.now(timezone.utc))
    with pytest.raises(ValueError, match="time zone"):
        NewJob("job.echo", not_before=datetime(2030, 1, 1))
    with pytest.raises(ValueError, match="timeout must be seconds"):
        NewJob("job.echo", timeout=-1)


async def test_a_job_that_is_not_there_is_not_found(client: AsyncClient) -> None:
    with pytest.raises(NotFound) as missing:
        await client.job("no-such-job").get()
    assert "lockgate jobs" in missing.value.next_step
    assert isinstance(missing.value, LookupError)


async def test_waiting_ends_with_its_timeout(client: AsyncClient) -> None:
    job = await client.submit("job.echo", delay=3600)
    with pytest.raises(CallTimeout):
        await job.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        await job.wait(timeout=0.05)
    await job.cancel()


async def test_a_watch_goes_on_from_where_it_was_left(client: AsyncClient) -> None:
    job = await client.submit("job.echo")
    await job.wait(timeout=PATIENCE)
    events = [update async for update in job.watch() if hasattr(update, "n")]
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    rest = [update async for update in job.watch(after=events[1].n) if hasattr(update, "n")]
    assert rest == events[2:]
