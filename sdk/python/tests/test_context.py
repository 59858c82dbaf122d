"""What a handler knows and says while it runs."""

from __future__ import annotations

import asyncio
import logging

import pytest

from lockgate import AsyncClient, AwaitChildren, Child, Context, JobFailed, Progress, SyncContext, Worker
from lockgate.testing import TestServer, serving

from .conftest import PATIENCE, Serve, wait_until


async def test_a_handler_knows_its_job(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("ctx.knows")
    async def knows(ctx: Context) -> dict[str, object]:
        return {
            "id": ctx.job_id,
            "topic": ctx.topic,
            "attempt": ctx.attempt,
            "tenant": ctx.tenant,
            "labels": ctx.labels,
            "env": ctx.env,
            "traced": bool(ctx.traceparent) or not ctx.trace_id,
            "network": ctx.may_use_network,
            "exec": ctx.may_exec,
            "gathered": ctx.gathered,
        }

    await serve(worker)
    job = await client.submit("ctx.knows", labels={"a": "b"}, env={"C": "d"})
    told = await job.result(timeout=PATIENCE)
    assert told.pop("traced") in (True, False)
    assert told == {
        "id": job.id,
        "topic": "ctx.knows",
        "attempt": 1,
        "tenant": "default",
        "labels": {"a": "b"},
        "env": {"C": "d"},
        "network": True,
        "exec": True,
        "gathered": None,
    }


async def test_progress_reaches_a_watch(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    seen = asyncio.Event()

    @worker.handler("ctx.progress")
    async def progress(ctx: Context) -> None:
        ctx.progress(50, "half way ü")
        await seen.wait()

    await serve(worker)
    job = await client.submit("ctx.progress")

    async def read() -> None:
        async for update in job.watch():
            if isinstance(update, Progress):
                assert (update.percent, update.message) == (50, "half way ü")
                seen.set()

    await asyncio.wait_for(read(), PATIENCE)
    assert (await job.get()).succeeded


async def test_lines_and_logging_reach_the_log_of_the_job(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    logger = logging.getLogger("shop")

    @worker.handler("ctx.log")
    async def log(ctx: Context) -> None:
        ctx.log("from the coroutine")
        logger.warning("charged %s", "ä")
        logger.debug("too quiet")

    @worker.handler("ctx.log.thread")
    def log_in_thread(ctx: SyncContext) -> None:
        ctx.log("from the thread")
        logger.error("declined")

    await serve(worker)
    for topic, expected in [
        ("ctx.log", ["from the coroutine", "WARNING shop: charged ä"]),
        ("ctx.log.thread", ["from the thread", "ERROR shop: declined"]),
    ]:
        job = await client.submit(topic)
        await job.wait(timeout=PATIENCE)

        async def logged() -> bool:
            return [line.line for line in await job.logs()] == expected  # noqa: B023

        await wait_until(f"the log of {topic}", logged)


async def test_job_logs_can_be_turned_off(client: AsyncClient, server: TestServer) -> None:
    worker = Worker(server.url, job_logs=None)

    @worker.handler("ctx.quiet")
    async def quiet(ctx: Context) -> None:
        logging.getLogger("shop").error("not for the job")
        ctx.log("the last line")

    async with serving(worker):
        job = await client.submit("ctx.quiet")
        await job.wait(timeout=PATIENCE)

        async def logged() -> bool:
            return bool(await job.logs())

        await wait_until("the line", logged)
    assert [line.line for line in await job.logs()] == ["the last line"]


async def test_a_parent_waits_for_its_children_without_a_slot(client: AsyncClient, server: TestServer) -> None:
    worker = Worker(server.url, slots=1)

    @worker.handler("ctx.book")
    async def book(ctx: Context, pages: int) -> list[object]:
        if ctx.gathered is None:
            ids = await ctx.submit_children(Child(f"page-{n}", "ctx.page", n, max_attempts=1) for n in range(pages))
            assert len(ids) == pages
            raise AwaitChildren(timeout=PATIENCE)
        return [(child.key, child.result, child.reason) for child in await ctx.children()]

    @worker.handler("ctx.page")
    def page(n: int) -> int:
        if n == 2:
            raise ValueError("torn")
        return n * n

    async with serving(worker):
        job = await client.submit("ctx.book", 3)
        result = await job.result(timeout=PATIENCE)
    assert result == [["page-0", 0, None], ["page-1", 1, None], ["page-2", None, "failed"]]


async def test_a_plain_function_submits_children_too(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("ctx.sync-parent")
    def parent(ctx: SyncContext) -> list[str]:
        if not ctx.gathered:
            ctx.submit_children([Child("only", "job.echo", "x")])
            raise AwaitChildren(review=True)
        return [child.state for child in ctx.children()]

    await serve(worker)
    assert await (await client.submit("ctx.sync-parent")).result(timeout=PATIENCE) == ["SUCCEEDED"]


async def test_a_child_that_is_refused_is_fatal(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("ctx.bad-child")
    async def parent(ctx: Context) -> None:
        await ctx.submit_children([Child("a b", "job.echo")])

    await serve(worker)
    with pytest.raises(JobFailed) as failed:
        await (await client.submit("ctx.bad-child", max_attempts=4)).result(timeout=PATIENCE)
    assert failed.value.job.attempts == 1


async def test_policy_is_asked_before_an_action() -> None:
    policy = """
version: 1
default: {decision: allow, reason: nothing forbids it}
rules:
  - {id: no-shell, match: {topics: [action.tool], when: 'payload.value == "shell"'}, decision: deny, reason: no shells here}
"""
    with TestServer(policy=policy) as server:
        worker = Worker(server.url)

        @worker.handler("ctx.agent")
        async def agent(ctx: Context, tool: str) -> str:
            await ctx.check(tool=tool, detail={"arguments": ["-la"]})
            return "done"

        async with serving(worker):
            client = AsyncClient(server.url)
            assert await (await client.submit("ctx.agent", "search")).result(timeout=PATIENCE) == "done"
            with pytest.raises(JobFailed, match="no shells here"):
                await (await client.submit("ctx.agent", "shell")).result(timeout=PATIENCE)


async def test_check_takes_one_action(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("ctx.two-actions")
    async def agent(ctx: Context) -> None:
        await ctx.check(tool="a", url="b")

    await serve(worker)
    job = await client.submit("ctx.two-actions", max_attempts=1)
    with pytest.raises(JobFailed, match="check takes one of tool, url and command"):
        await job.result(timeout=PATIENCE)
