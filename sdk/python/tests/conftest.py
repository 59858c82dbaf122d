"""A real server for all tests, and workers that live as long as their test."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import TypeVar

import pytest

from lockgate import AsyncClient, Worker
from lockgate.testing import TestServer, serving

T = TypeVar("T")

PATIENCE = 30.0
"""Longer than anything takes on a busy machine."""


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    with TestServer() as server:
        yield server


@pytest.fixture
def client(server: TestServer) -> AsyncClient:
    return AsyncClient(server.url, actor="ann")


@pytest.fixture
def worker(server: TestServer) -> Worker:
    """A worker without handlers; `serve` starts it."""
    return Worker(server.url, slots=8, drain_timeout=5)


Serve = Callable[[Worker], Awaitable[Worker]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts workers, and drains them when the test is over."""
    async with AsyncExitStack() as stack:

        async def start(worker: Worker) -> Worker:
            return await stack.enter_async_context(serving(worker))

        yield start


async def wait_until(what: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Asks until the answer is true."""
    import asyncio

    end = time.monotonic() + PATIENCE
    while not (answer := await ask()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        await asyncio.sleep(0.02)
    return answer
