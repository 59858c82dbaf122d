"""Attempts that no longer count: cancelled, too slow, or of a worker that leaves."""

from __future__ import annotations

import asyncio
import threading

from lockgate import AsyncClient, Context, SyncContext, Worker
from lockgate.testing import TestServer, serving

from .conftest import PATIENCE, Serve


async def test_a_cancel_is_a_cancelled_error_in_a_coroutine(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    begun, told = asyncio.Event(), asyncio.Event()

    @worker.handler("stop.coroutine")
    async def wait_for_ever(ctx: Context) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert ctx.is_cancelled
            told.set()
            raise

    await serve(worker)
    job = await client.submit("stop.coroutine")
    await asyncio.wait_for(begun.wait(), PATIENCE)
    assert await job.cancel("changed my mind") == "CANCELLED"
    await asyncio.wait_for(told.wait(), PATIENCE)
    assert (await job.wait(timeout=PATIENCE)).state == "CANCELLED"


async def test_a_coroutine_that_swallows_the_cancel_changes_nothing(
    client: AsyncClient, worker: Worker, serve: Serve
) -> None:
    begun, told = asyncio.Event(), asyncio.Event()

    @worker.handler("stop.stubborn")
    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.set()
        return "as if nothing had happened"

    await serve(worker)
    job = await client.submit("stop.stubborn")
    await asyncio.wait_for(begun.wait(), PATIENCE)
    await job.cancel()
    await asyncio.wait_for(told.wait(), PATIENCE)
    record = await job.wait(timeout=PATIENCE)
    assert (record.state, record.result) == ("CANCELLED", None)


async def test_a_cancel_is_an_event_in_a_thread(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    begun, told = threading.Event(), threading.Event()

    @worker.handler("stop.thread")
    def wait_in_thread(ctx: SyncContext) -> None:
        begun.set()
        if ctx.cancelled.wait(PATIENCE):
            told.set()

    await serve(worker)
    job = await client.submit("stop.thread")
    await asyncio.to_thread(begun.wait, PATIENCE)
    await job.cancel()
    assert await asyncio.to_thread(told.wait, PATIENCE)


async def test_a_thread_keeps_its_slot_until_it_ends(client: AsyncClient, server: TestServer) -> None:
    begun, second_begun, go_on = threading.Event(), threading.Event(), threading.Event()
    worker = Worker(server.url, slots=1)

    @worker.handler("stop.slot")
    def hold(ctx: SyncContext, n: int) -> int:
        if n == 2:
            second_begun.set()
            return n
        begun.set()
        ctx.cancelled.wait(PATIENCE)
        assert not second_begun.is_set(), "the thread still has its slot"
        go_on.set()
        return n

    async with serving(worker):
        first = await client.submit("stop.slot", 1)
        await asyncio.to_thread(begun.wait, PATIENCE)
        second = await client.submit("stop.slot", 2)
        await first.cancel()
        assert await second.result(timeout=PATIENCE) == 2
    assert go_on.is_set()


async def test_an_attempt_beyond_its_timeout_is_stopped_and_ends_the_job(
    client: AsyncClient, worker: Worker, serve: Serve
) -> None:
    told = asyncio.Event()

    @worker.handler("stop.slow")
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    await serve(worker)
    job = await client.submit("stop.slow", timeout=0.2, max_attempts=1)
    assert (await job.wait(timeout=PATIENCE)).state == "TIMEOUT"
    await asyncio.wait_for(told.wait(), PATIENCE)


async def test_a_worker_that_drains_finishes_what_it_runs(client: AsyncClient, server: TestServer) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    worker = Worker(server.url, drain_timeout=PATIENCE)

    @worker.handler("stop.drain")
    async def finish() -> str:
        begun.set()
        await go_on.wait()
        return "finished"

    async with serving(worker):
        job = await client.submit("stop.drain")
        await asyncio.wait_for(begun.wait(), PATIENCE)
        worker.drain()
        later = await client.submit("stop.drain")
        go_on.set()
        assert await job.result(timeout=PATIENCE) == "finished"
    assert (await later.get()).state == "SCHEDULED"
    await later.cancel()


async def test_what_is_not_finished_within_the_drain_timeout_is_given_back(client: AsyncClient, server: TestServer) -> None:
    begun = asyncio.Event()
    worker = Worker(server.url, drain_timeout=0.1)

    @worker.handler("stop.give-back")
    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with serving(worker):
        job = await client.submit("stop.give-back")
        await asyncio.wait_for(begun.wait(), PATIENCE)
    record = await job.get()
    assert (record.state, record.failures) == ("SCHEDULED", 0)
    await job.cancel()


async def test_a_cancelled_task_of_the_worker_drains(client: AsyncClient, server: TestServer) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    worker = Worker(server.url, drain_timeout=PATIENCE)

    @worker.handler("stop.task")
    async def finish() -> str:
        begun.set()
        await go_on.wait()
        return "finished"

    task = asyncio.create_task(worker.serve())
    job = await client.submit("stop.task")
    await asyncio.wait_for(begun.wait(), PATIENCE)
    task.cancel()
    go_on.set()
    assert await job.result(timeout=PATIENCE) == "finished"
    await asyncio.wait({task})
    assert task.cancelled()


async def test_an_attempt_bound_to_its_lease_stops_when_the_server_is_gone() -> None:
    begun, told = asyncio.Event(), asyncio.Event()
    with TestServer(arguments=["--lost-after", "3s"]) as server:
        worker = Worker(server.url, drain_timeout=0.1)

        @worker.handler("stop.leased", on_lease_loss="stop")
        async def leased() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.set()

        async with serving(worker):
            await AsyncClient(server.url).submit("stop.leased")
            await asyncio.wait_for(begun.wait(), PATIENCE)
            server.stop()
            await asyncio.wait_for(told.wait(), PATIENCE)
