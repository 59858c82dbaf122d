"""Policy, approvals, dead letters and credentials."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from lockgate import (
    AsyncClient,
    Client,
    Conflict,
    JobFailed,
    LockgateError,
    NotAllowed,
    ServerUnreachable,
    SetupError,
    Worker,
)
from lockgate.testing import TestServer, running, server_binary

from .conftest import PATIENCE

POLICY = """
version: 1
default: {decision: allow, reason: nothing forbids it}
rules:
  - {id: no-agents, match: {actor_types: [agent]}, decision: deny, reason: no agents here}
  - {id: money, match: {labels: {kind: payment}}, decision: require_approval, reason: money moves}
"""


@pytest.fixture(scope="module")
def governed() -> Iterator[TestServer]:
    with TestServer(policy=POLICY) as server:
        yield server


@pytest.fixture(scope="module")
def guarded() -> Iterator[TestServer]:
    with TestServer(arguments=["--auth"]) as server:
        yield server


def admin_key(server: TestServer) -> str:
    return (server.data / "admin.key").read_text().strip()


async def test_policy_denies_a_job_and_says_why(governed: TestServer) -> None:
    client = AsyncClient(governed.url, actor="robot", actor_type="agent")
    job = await client.submit("job.echo", 1)
    with pytest.raises(JobFailed, match="no agents here") as denied:
        await job.result(timeout=PATIENCE)
    assert denied.value.job.state == "DENIED"
    letter = (await client.dead_letters(topic="job.echo", limit=10))[0]
    assert (letter.job_id, letter.state) == (job.id, "DENIED")
    assert (await client.replay_all(topic="job.echo", dry_run=True)).matched >= 1
    counts = await client.replay(job.id)
    assert (counts.replayed, counts.job_ids) == (1, (job.id,))


async def test_a_payment_waits_for_a_second_person(governed: TestServer) -> None:
    ann, bob = AsyncClient(governed.url, actor="ann"), AsyncClient(governed.url, actor="bob")
    job = await ann.submit("job.echo", {"amount": 120}, labels={"kind": "payment"})
    why = await job.why()
    assert why.state == "APPROVAL_REQUIRED" and "money" in why.rule
    (approval,) = [one for one in await bob.approvals() if one.job_id == job.id]
    assert (approval.submitter, approval.payload, approval.rule) == ("ann", {"amount": 120}, "money")
    with pytest.raises(Conflict) as own:
        await ann.approve(approval)
    assert own.value.code == "self_approval"
    answered = await bob.approve(approval, "checked")
    assert answered.approved_by == ("bob",)
    assert await job.result(timeout=PATIENCE) == {"amount": 120}


def test_a_rejected_job_is_denied(governed: TestServer) -> None:
    ann, bob = governed.client(actor="ann"), governed.client(actor="bob")
    job = ann.submit("job.echo", labels={"kind": "payment"})
    assert bob.reject(job.id, "not this month").state == "DENIED"
    with pytest.raises(JobFailed, match="DENIED"):
        job.result(timeout=PATIENCE)


async def test_an_approval_of_what_was_changed_is_a_conflict(governed: TestServer) -> None:
    import dataclasses

    ann, bob = AsyncClient(governed.url, actor="ann"), AsyncClient(governed.url, actor="bob")
    job = await ann.submit("job.echo", 1, labels={"kind": "payment"})
    (approval,) = [one for one in await bob.approvals() if one.job_id == job.id]
    with pytest.raises(Conflict):
        await bob.approve(dataclasses.replace(approval, request_hash="0" * 64))
    await job.cancel()


async def test_a_call_without_a_good_credential_is_not_allowed(guarded: TestServer) -> None:
    for credential in (None, "lgk_0000000000000000_wrong"):
        with pytest.raises(NotAllowed) as refused:
            await AsyncClient(guarded.url, credential=credential).submit("job.echo")
        assert isinstance(refused.value, PermissionError) and "credential" in refused.value.next_step
    client = AsyncClient(guarded.url, credential=admin_key(guarded))
    assert await (await client.submit("job.echo", 5)).result(timeout=PATIENCE) == 5


async def test_a_worker_without_a_good_credential_ends_with_the_reason(guarded: TestServer) -> None:
    worker = Worker(guarded.url, credential="lgk_0000000000000000_wrong")
    worker.handler("a.b")(lambda: None)
    with pytest.raises(NotAllowed, match="the server refuses this worker"):
        await worker.serve()


def test_the_environment_says_what_the_program_does_not(guarded: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKGATE_SERVER", guarded.url)
    monkeypatch.setenv("LOCKGATE_API_KEY", admin_key(guarded))
    assert Client().submit("job.echo", 6).result(timeout=PATIENCE) == 6


def test_client_and_worker_go_over_tls_with_keys_of_their_own(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    ca, cert, key = tmp_path / "ca.pem", tmp_path / "cert.pem", tmp_path / "key.pem"
    authority.cert_pem.write_to_path(str(ca))
    certificate.cert_chain_pems[0].write_to_path(str(cert))
    certificate.private_key_pem.write_to_path(str(key))
    with TestServer(arguments=["--auth", "--tls-cert", str(cert), "--tls-key", str(key)]) as server:
        assert server.url.startswith("https://")
        admin = ["--server", server.url, "--tls-ca", str(ca), "--api-key", admin_key(server)]
        make = [server_binary(), *admin, "auth", "key", "create", "py-worker", "--role", "worker", "--everyone"]
        made = subprocess.run(make, capture_output=True, text=True, check=True, timeout=PATIENCE)
        worker = Worker(server.url, credential=made.stdout.split()[0], tls_ca=ca)
        worker.handler("tls.echo")(lambda payload: payload)
        client = Client(server.url, credential=admin_key(server), tls_ca=ca)
        with running(worker):
            assert client.submit("tls.echo", "over TLS").result(timeout=PATIENCE) == "over TLS"
        with pytest.raises(ServerUnreachable, match=r"UnknownIssuer.*authority of the server's certificate"):
            Client(server.url, credential=admin_key(server)).get("x")


def test_a_worker_that_is_refused_beside_a_test_is_told(guarded: TestServer) -> None:
    worker = Worker(guarded.url, credential="lgk_0000000000000000_wrong")
    worker.handler("a.b")(lambda: None)
    with pytest.raises(NotAllowed, match="the server refuses this worker"), running(worker):
        Client(guarded.url, credential=admin_key(guarded)).submit("a.b").result(timeout=0.5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "nonsense"}, "http://host:port"),
        ({"url": "http://far.example:1", "credential": "lgk_x"}, "must not travel in the clear"),
        ({"url": "https://localhost:1", "tls_ca": Path("/no/such/file")}, "/no/such/file"),
        ({"url": "https://localhost:1", "tls_cert": "a.pem"}, "client certificate"),
        ({"url": "http://127.0.0.1:1", "tenant": "ä"}, "plain ASCII"),
    ],
)
async def test_a_client_that_cannot_work_says_so(settings: dict[str, str], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        await AsyncClient(**settings).get("x")  # type: ignore[arg-type]


async def test_a_server_that_is_away_is_unreachable() -> None:
    with pytest.raises(ServerUnreachable) as away:
        await AsyncClient("http://127.0.0.1:9").get("x")
    error: LockgateError = away.value
    assert isinstance(error, ConnectionError) and "lockgate serve" in str(error)
