"""How attempts end."""

from __future__ import annotations

import pytest

from lockgate import AsyncClient, Cancelled, Context, Fatal, JobFailed, Retryable, Snooze, Worker

from .conftest import PATIENCE, Serve, wait_until


async def test_a_failure_is_tried_again_until_it_succeeds(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    seen: list[int] = []

    @worker.handler("outcome.flaky")
    async def flaky(ctx: Context) -> str:
        seen.append(ctx.attempt)
        if len(seen) < 3:
            raise RuntimeError("not yet")
        return "at last"

    await serve(worker)
    job = await client.submit("outcome.flaky", retry={"base": 0.001})
    assert await job.result(timeout=PATIENCE) == "at last"
    assert seen == [1, 2, 3]
    record = await job.get()
    assert [attempt.message for attempt in record.history][:2] == ["RuntimeError: not yet"] * 2

    async def traceback_is_logged() -> bool:
        return any("in flaky" in line.line for line in await job.logs())

    await wait_until("the traceback in the log of the job", traceback_is_logged)


async def test_retries_end_with_the_budget(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("outcome.hopeless")
    def hopeless() -> None:
        raise Retryable("still closed", after=0.001)

    await serve(worker)
    job = await client.submit("outcome.hopeless", max_attempts=2)
    with pytest.raises(JobFailed) as failed:
        await job.result(timeout=PATIENCE)
    assert failed.value.job.attempts == 2
    assert failed.value.job.last_error is not None and "still closed" in failed.value.job.last_error.message


async def test_a_code_that_is_not_tried_again_ends_the_job(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("outcome.declined")
    async def declined() -> None:
        raise Retryable("card declined", code="card_declined")

    await serve(worker)
    job = await client.submit("outcome.declined", retry={"non_retryable": ["card_declined"]}, max_attempts=9)
    assert (await job.wait(timeout=PATIENCE)).attempts == 1


async def test_a_fatal_failure_is_a_dead_letter_at_once(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("outcome.fatal")
    async def fatal() -> None:
        raise Fatal("no such account")

    await serve(worker)
    job = await client.submit("outcome.fatal", max_attempts=9)
    with pytest.raises(JobFailed, match="no such account"):
        await job.result(timeout=PATIENCE)
    letters = await client.dead_letters(topic="outcome.fatal")
    assert [letter.job_id for letter in letters] == [job.id]


async def test_a_snooze_costs_no_attempt(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    calls: list[int] = []

    @worker.handler("outcome.snooze")
    async def snooze() -> int:
        calls.append(1)
        if len(calls) < 4:
            raise Snooze(0.001)
        return len(calls)

    await serve(worker)
    job = await client.submit("outcome.snooze", max_attempts=1)
    assert await job.result(timeout=PATIENCE) == 4


async def test_a_handler_may_end_its_job_as_cancelled(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("outcome.cancelled")
    async def cancelled() -> None:
        raise Cancelled("the order was withdrawn")

    await serve(worker)
    job = await client.submit("outcome.cancelled")
    assert (await job.wait(timeout=PATIENCE)).state == "CANCELLED"


@pytest.mark.parametrize("value", [object(), float("inf"), "\udfff", {1, 2}])
async def test_a_result_without_a_json_form_is_fatal(
    client: AsyncClient, worker: Worker, serve: Serve, value: object
) -> None:
    @worker.handler("outcome.result")
    async def result() -> object:
        return value

    await serve(worker)
    with pytest.raises(JobFailed, match="the handler's result is not valid JSON"):
        await (await client.submit("outcome.result")).result(timeout=PATIENCE)


async def test_a_result_beyond_the_limit_is_fatal(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("outcome.large")
    async def large() -> str:
        return "x" * (1024 * 1024)

    await serve(worker)
    with pytest.raises(JobFailed, match="more than 1048576"):
        await (await client.submit("outcome.large")).result(timeout=PATIENCE)


async def test_an_outcome_that_cannot_be_sent_is_fatal(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("outcome.wrong")
    async def wrong() -> None:
        raise Snooze(-5)

    await serve(worker)
    with pytest.raises(JobFailed, match="Snooze: delay must be seconds"):
        await (await client.submit("outcome.wrong")).result(timeout=PATIENCE)
