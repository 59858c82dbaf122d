"""Workers: how handlers are registered and where they run."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from lockgate import AsyncClient, Context, Fatal, JobFailed, SetupError, Snooze, SyncContext, Worker
from lockgate.testing import TestServer, running, serving

from .conftest import PATIENCE, Serve, wait_until


def in_another_process(n: int) -> dict[str, int]:
    if n < 0:
        raise Fatal("n must not be negative")
    return {"pid": os.getpid(), "n": n}


def ends_its_process() -> None:
    os._exit(3)


async def test_plain_functions_run_in_threads_beside_the_loop(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    together = threading.Barrier(3)

    @worker.handler("run.thread")
    def in_thread(n: int) -> str:
        together.wait(PATIENCE)
        return threading.current_thread().name

    await serve(worker)
    jobs = [await client.submit("run.thread", n) for n in range(3)]
    names = {await job.result(timeout=PATIENCE) for job in jobs}
    assert len(names) == 3 and all(name.startswith("lockgate-handler") for name in names)


async def test_a_function_can_run_in_another_process(client: AsyncClient, server: TestServer) -> None:
    worker = Worker(server.url, slots=1)
    worker.handler("run.process", run_in="process")(in_another_process)
    async with serving(worker):
        result = await (await client.submit("run.process", 4)).result(timeout=PATIENCE)
        assert result["n"] == 4 and result["pid"] != os.getpid()
        with pytest.raises(JobFailed, match="n must not be negative"):
            await (await client.submit("run.process", -1)).result(timeout=PATIENCE)


async def test_a_process_that_dies_is_a_failure_that_is_tried_again(client: AsyncClient, server: TestServer) -> None:
    worker = Worker(server.url, slots=1)
    worker.handler("run.dies", run_in="process")(ends_its_process)
    async with serving(worker):
        job = await client.submit("run.dies", max_attempts=2, retry={"base": 0.001})
        with pytest.raises(JobFailed, match="a process of the worker ended") as failed:
            await job.result(timeout=PATIENCE)
        assert failed.value.job.attempts == 2


async def test_a_pattern_serves_what_no_topic_does(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("pattern.*")
    async def rest(ctx: Context) -> str:
        return f"rest {ctx.topic}"

    @worker.handler("pattern.exact")
    async def exact() -> str:
        return "exact"

    await serve(worker)
    assert await (await client.submit("pattern.exact")).result(timeout=PATIENCE) == "exact"
    assert await (await client.submit("pattern.other")).result(timeout=PATIENCE) == "rest pattern.other"


async def test_a_worker_is_found_by_what_it_has(client: AsyncClient, server: TestServer) -> None:
    worker = Worker(server.url, name="py-gpu", capabilities=["gpu"], labels={"zone": "a"}, region="eu", prefetch=1)

    @worker.handler("run.capable")
    async def capable() -> str:
        return "here"

    options: dict[str, Any] = {"requires": ["gpu"], "labels": {"placement.region": "eu", "placement.zone": "a"}}
    job = await client.submit("run.capable", **options)
    assert (await job.get()).state == "SCHEDULED"
    async with serving(worker):
        assert await job.result(timeout=PATIENCE) == "here"
    assert (await job.get()).history[0].worker_id == "py-gpu"


async def test_a_pool_that_is_not_configured_is_told(server: TestServer) -> None:
    worker = Worker(server.url, pool="elsewhere")
    worker.handler("run.pool")(lambda: None)
    with pytest.raises(SetupError, match=r"add it to pools\.yaml"):
        await asyncio.wait_for(worker.serve(), PATIENCE)


async def test_results_in_a_journal_survive_a_worker(client: AsyncClient, server: TestServer, tmp_path: Path) -> None:
    worker = Worker(server.url, journal=tmp_path / "journal")

    @worker.handler("run.journal")
    async def journaled() -> str:
        return "kept"

    async with serving(worker):
        assert await (await client.submit("run.journal")).result(timeout=PATIENCE) == "kept"
    assert (tmp_path / "journal").exists()
    broken = Worker(server.url, journal=tmp_path / "no" / "such" / "folder")
    broken.handler("run.journal")(lambda: None)
    with pytest.raises(SetupError, match="result journal"):
        await broken.serve()


def test_a_worker_runs_in_a_thread_of_its_own(server: TestServer) -> None:
    worker = Worker(server.url)

    @worker.handler("run.beside")
    def beside() -> str:
        return "from a thread"

    with running(worker):
        assert server.client().submit("run.beside").result(timeout=PATIENCE) == "from a thread"


def test_a_worker_that_is_drained_before_it_runs_ends_at_once(server: TestServer) -> None:
    worker = Worker(server.url)
    worker.handler("run.never")(lambda: None)
    worker.drain()
    worker.run()


async def test_a_worker_runs_once_at_a_time(worker: Worker, serve: Serve) -> None:
    worker.handler("run.once")(lambda: None)
    await serve(worker)
    await asyncio.sleep(0)
    with pytest.raises(SetupError, match="runs already"):
        await worker.serve()


async def test_every_mistake_in_the_settings_is_told_at_once(server: TestServer) -> None:
    worker = Worker(server.url, slots=0, prefetch=9)
    worker.handler("not a topic")(lambda: None)
    with pytest.raises(SetupError) as refused:
        await worker.serve()
    for part in ("no slots", "prefetch at most 4", "not a topic"):
        assert part in str(refused.value)
    with pytest.raises(SetupError, match="no handler"):
        await Worker(server.url).serve()


def test_handlers_that_could_not_be_called_are_refused_when_they_are_registered(worker: Worker) -> None:
    def two(ctx: Context, a: int, b: int) -> None: ...
    def keyword(*, payload: int) -> None: ...
    def local(payload: int) -> None: ...
    def with_context(ctx: SyncContext, payload: int) -> None: ...
    async def coroutine() -> None: ...
    def hinted(payload: complex) -> None: ...

    for function, options, said in [
        (two, {}, r"\(ctx, payload\)"),
        (keyword, {}, r"\(ctx, payload\)"),
        (local, {"run_in": "process"}, "top of a module"),
        (with_context, {"run_in": "process"}, "no context"),
        (coroutine, {"run_in": "thread"}, "event loop"),
        (local, {"run_in": "loop"}, "a thread or a process"),
        (hinted, {}, "no type that JSON"),
    ]:
        with pytest.raises(SetupError, match=said):
            worker.handler("refused.topic", **options)(function)  # type: ignore[arg-type, type-var]
    worker.handler("taken.topic")(local)
    with pytest.raises(SetupError, match="has a handler already"):
        worker.handler("taken.topic")(coroutine)


async def test_what_the_core_logs_reaches_python(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker("http://127.0.0.1:9")
    worker.handler("run.away")(lambda: None)
    caplog.set_level(logging.INFO, "lockgate.core")
    async with serving(worker):

        async def said() -> bool:
            return any("not attached to the server" in record.getMessage() for record in caplog.records)

        await wait_until("a word about the server", said)


async def test_more_jobs_than_slots_all_run(client: AsyncClient, server: TestServer) -> None:
    worker = Worker(server.url, slots=2)
    busy, most = [0], [0]

    @worker.handler("run.many")
    async def many(n: int) -> int:
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        await asyncio.sleep(0)
        busy[0] -= 1
        if n % 7 == 0 and n not in snoozed:
            snoozed.add(n)
            raise Snooze(0)
        return n

    snoozed: set[int] = set()
    async with serving(worker):
        jobs = [await client.submit("run.many", n) for n in range(30)]
        assert [await job.result(timeout=PATIENCE) for job in jobs] == list(range(30))
    assert most[0] <= 2
