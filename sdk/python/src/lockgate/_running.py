"""Runs attempts: coroutines in the event loop, plain functions in threads, and what is asked for in other processes."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from lockgate import _core, _ending, _native
from lockgate._handlers import Route
from lockgate.context import AttemptContext, Context, SyncContext, current
from lockgate.outcomes import Retryable


class Attempts:
    """The attempts that run in one event loop. `dispatch` and `stop` are called by the core, from its own thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, routes: list[Route], slots: int) -> None:
        self._loop = loop
        self._routes = routes
        self._slots = slots
        self._running: dict[int, tuple[asyncio.Task[None], Route, AttemptContext]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._processes: ProcessPoolExecutor | None = None

    def dispatch(self, attempts: list[_native.Attempt]) -> None:
        _core.post(self._loop, self._begin, attempts)

    def stop(self, number: int) -> None:
        _core.post(self._loop, self._stop, number)

    def close(self) -> None:
        """Lets go of threads and processes. One that still runs an attempt that no longer counts is not waited for."""
        for pool in (self._threads, self._processes):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, attempts: list[_native.Attempt]) -> None:
        for attempt in attempts:
            route = self._routes[attempt.route]
            context = Context(attempt) if route.run_in == "loop" else SyncContext(attempt)
            task = self._loop.create_task(self._run(route, context, attempt), name=f"lockgate {attempt.job_id}")
            self._running[attempt.number] = (task, route, context)

    def _stop(self, number: int) -> None:
        if number in self._running:
            task, route, context = self._running[number]
            if isinstance(context, SyncContext):
                context.cancelled.set()
            if route.run_in != "thread":
                task.cancel()
            # A thread runs on until its function returns; only then is the attempt over here.

    async def _run(self, route: Route, context: AttemptContext, attempt: _native.Attempt) -> None:
        try:
            if route.run_in == "loop":
                current.set(context)
                value = await route.function(*route.arguments(context, attempt.payload))
                result = _ending.result_text(value)
            elif route.run_in == "thread":
                result = await self._in_thread(route, context, attempt.payload)
            else:
                result = await self._in_process(route, attempt.payload)
        except (KeyboardInterrupt, SystemExit) as error:
            attempt.fail(_ending.of_exception(error, context))
            raise
        except BaseException as error:
            attempt.fail(_ending.of_exception(error, context))
        else:
            attempt.succeed(result)
        finally:
            del self._running[attempt.number]

    async def _in_thread(self, route: Route, context: AttemptContext, payload: str) -> str:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._slots, thread_name_prefix="lockgate-handler")
        # A copy for each call: the thread is used again for other attempts.
        call = self._loop.run_in_executor(self._threads, copy_context().run, _call_in_thread, route, context, payload)
        return await call

    async def _in_process(self, route: Route, payload: str) -> str:
        if self._processes is None:
            # A fork would have the locks of this process, and not its threads.
            spawn = multiprocessing.get_context("spawn")
            self._processes = ProcessPoolExecutor(self._slots, mp_context=spawn)
        arguments = route.arguments(None, payload)
        try:
            return await self._loop.run_in_executor(self._processes, _call_in_process, route.function, arguments)
        except BrokenExecutor as error:
            self._processes = None
            raise Retryable(f"a process of the worker ended while it ran the handler: {error}") from error


def _call_in_thread(route: Route, context: AttemptContext, payload: str) -> str:
    if isinstance(context, SyncContext) and context.cancelled.is_set():
        # It waited for a thread until it no longer counted.
        raise asyncio.CancelledError
    current.set(context)
    return _ending.result_text(route.function(*route.arguments(context, payload)))


def _call_in_process(function: Any, arguments: tuple[Any, ...]) -> str:
    return _ending.result_text(function(*arguments))
