"""Workflows."""

from __future__ import annotations

import pytest

from lockgate import AsyncClient, Client, InvalidRequest, NotFound, RunFailed
from lockgate.testing import TestServer

from .conftest import PATIENCE

TWO = """
version: 1
dag: py-two
params: {n: {type: number}}
output: {n: "${nodes.b.output}"}
nodes:
  a: {topic: job.echo, payload: "${params.n}"}
  b: {needs: [a], topic: job.echo, payload: "${nodes.a.output}"}
"""

FAILS = """
version: 1
dag: py-fails
nodes:
  a: {topic: job.always_fail, max_attempts: 1}
"""


async def test_a_workflow_is_stored_started_and_waited_for(client: AsyncClient) -> None:
    assert await client.put_dag(TWO) >= 1
    run = await client.start_dag("py-two", {"n": 7}, idempotency_key="py-two-7")
    assert await run.result(dict[str, int], timeout=PATIENCE) == {"n": 7}
    record = await run.get()
    assert (record.state, record.node("b").state, record.done, record.total) == ("SUCCEEDED", "SUCCEEDED", 2, 2)
    again = await client.start_dag("py-two", {"n": 7}, idempotency_key="py-two-7")
    assert (again.id, again.existed) == (run.id, True)


def test_a_run_that_fails_raises(server: TestServer) -> None:
    client = Client(server.url)
    client.put_dag(FAILS)
    with pytest.raises(RunFailed, match="ended as FAILED"):
        client.start_dag("py-fails").result(timeout=PATIENCE)


async def test_a_run_can_be_cancelled(client: AsyncClient) -> None:
    await client.put_dag("{version: 1, dag: py-slow, nodes: {a: {topic: job.sleep, payload: {ms: 60000}}}}")
    run = await client.start_dag("py-slow")
    await client.run(run.id).cancel("enough")
    assert (await run.wait(timeout=PATIENCE)).state == "CANCELED"


async def test_mistakes_are_told(client: AsyncClient) -> None:
    with pytest.raises(InvalidRequest):
        await client.put_dag("version: 1\ndag: broken\nnodes: {a: {topicc: x}}")
    with pytest.raises(NotFound, match="no-such-dag"):
        await client.start_dag("no-such-dag")
