#!/usr/bin/env python3
"""A worker that speaks nothing but NATS.

    pip install -r requirements.txt
    python worker.py --nats nats://127.0.0.1:4222

It serves py.echo (answers with the payload), py.sleep ({"seconds": 2}) and py.fail. Replace HANDLERS with your own: a handler is a
coroutine that takes the payload and returns the result. README.md tells what the rest of this file keeps to, and why.
"""

import argparse
import asyncio
import importlib
import json
import pathlib
import signal
import sys
import tempfile
import time
import uuid

import nats
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def generated():
    """The messages of proto/lockgate/v1/worker.proto and what it imports, generated when the worker starts."""
    with tempfile.TemporaryDirectory(prefix="lockgate-proto-") as folder:
        files = sorted(str(file.relative_to(PROTO)) for file in PROTO.glob("lockgate/v1/*.proto"))
        if protoc.main(["protoc", f"-I{PROTO}", f"--python_out={folder}", *files]) != 0:
            sys.exit(f"the files of {PROTO}/lockgate/v1 cannot be compiled")
        sys.path.insert(0, folder)
        try:
            return importlib.import_module("lockgate.v1.worker_pb2")
        finally:
            sys.path.remove(folder)


v1 = generated()

# Without an answer for this long, another process is asked to hold this worker.
UNANSWERED_AFTER = 5.0
# How long an answer to a result is waited for before it is told again.
ANSWER_WITHIN = 5.0


async def echo(payload):
    return payload


async def sleep(payload):
    await asyncio.sleep(float(payload["seconds"]))
    return "slept"


async def fail(payload):
    raise RuntimeError(f"told to fail: {payload}")


HANDLERS = {"py.echo": echo, "py.sleep": sleep, "py.fail": fail}


class Attempt:
    """What this worker holds, from its assignment until its result is acknowledged."""

    def __init__(self, assignment):
        self.assignment = assignment
        self.started_at_ms = None
        self.task = None

    def held(self):
        held = v1.Held(job_id=self.assignment.job_id, token=self.assignment.token)
        if self.started_at_ms is not None:
            held.started_at_ms = self.started_at_ms
        return held


class Worker:
    def __init__(self, connection, options):
        self.nats = connection
        self.options = options
        # Made once per process: an attempt of an earlier life is not this one's.
        self.session = str(uuid.uuid4())
        self.epoch = 0
        self.address = ""
        self.beat_every = 3.0
        self.highest = 0
        self.beats = 0
        self.answered_at = 0.0
        self.attempts = {}
        self.tasks = set()
        self.slots = asyncio.Semaphore(options.slots)
        self.hello_now = asyncio.Event()
        self.draining = False
        self.dismissed = asyncio.Event()

    async def run(self):
        # Before the first hello, or the answer would be missed.
        await self.nats.subscribe(f"worker.{self.options.id}.jobs", cb=self.hear)
        while not self.dismissed.is_set():
            if time.monotonic() - self.answered_at > UNANSWERED_AFTER or self.hello_now.is_set():
                await self.hello()
            else:
                await self.beat()
            await self.pause()

    async def pause(self):
        """Until the next beat, or something that is more urgent."""
        waits = [asyncio.create_task(event.wait()) for event in (self.hello_now, self.dismissed)]
        timeout = self.beat_every if self.address else 1.0
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def hello(self):
        self.hello_now.clear()
        hello = v1.Hello(
            session=self.session,
            worker_id=self.options.id,
            pool=self.options.pool,
            topics=sorted(HANDLERS),
            slots=self.options.slots,
            highest_assignment=self.highest,
            inventory=[attempt.held() for attempt in self.attempts.values()],
        )
        await self.nats.publish("sys.heartbeat", v1.WorkerMessage(hello=hello).SerializeToString())
        # A refusal or a process that is about to end must not be asked a thousand times a second.
        await asyncio.sleep(0.2)

    async def beat(self):
        self.beats += 1
        inventory = [attempt.held() for attempt in self.attempts.values()]
        active = sum(1 for attempt in self.attempts.values() if attempt.started_at_ms is not None)
        beat = v1.Beat(number=self.beats, highest_assignment=self.highest, inventory=inventory, active_jobs=active)
        await self.say(beat=beat, draining=self.draining)

    async def say(self, **parts):
        """All but results goes to the process that holds this worker."""
        if self.address:
            message = v1.WorkerMessage(session=self.session, **parts)
            await self.nats.publish(f"sys.heartbeat.{self.address}", message.SerializeToString())

    async def hear(self, carried):
        message = v1.ServerMessage.FromString(carried.data)
        if message.session != self.session:
            return
        if message.HasField("refused"):
            print(f"refused: {message.refused.code}: {message.refused.message}", file=sys.stderr, flush=True)
            return
        if message.HasField("welcome") and message.epoch > self.epoch:
            self.epoch, self.address = message.epoch, message.welcome.address
            self.beat_every = message.welcome.beat_every_ms / 1000
            self.answered_at = time.monotonic()
            print(f"attached, epoch {self.epoch}", flush=True)
        if message.epoch != self.epoch:
            return
        for assignment in message.assignments:
            self.take(assignment)
        for stop in message.stops:
            # Beside the rest: a handler may take its time to end, and beats must be heard meanwhile.
            self.keep(asyncio.create_task(self.stop(stop.token)))
        for revoke in message.revokes:
            attempt = self.attempts.get(revoke.token)
            if attempt is not None and attempt.started_at_ms is None:
                attempt.task.cancel()
                attempt.task = asyncio.create_task(self.tell(attempt, v1.Result(revoked=v1.Result.Revoked())))
        self.acknowledge(message.acks)
        if message.HasField("beat_ack"):
            self.answered_at = time.monotonic()
        if message.attach_again:
            self.hello_now.set()
        if message.drain:
            await self.drain()
        if message.dismissed and self.draining:
            self.dismissed.set()

    def keep(self, task):
        """A task that nobody refers to may be forgotten before it is done."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def take(self, assignment):
        # Numbers grow over the whole session: one that is not higher was here before.
        if assignment.number <= self.highest:
            return
        self.highest = assignment.number
        attempt = Attempt(assignment)
        self.attempts[assignment.token] = attempt
        attempt.task = asyncio.create_task(self.work(attempt))

    async def work(self, attempt):
        async with self.slots:
            attempt.started_at_ms = int(time.time() * 1000)
            start = v1.Start(job_id=attempt.assignment.job_id, token=attempt.assignment.token)
            await self.say(starts=[start])
            result = await self.outcome(attempt.assignment)
        await self.tell(attempt, result)

    async def outcome(self, assignment):
        try:
            payload = json.loads(assignment.payload_json or b"null")
            done = HANDLERS[assignment.topic](payload)
            value = await asyncio.wait_for(done, assignment.timeout_ms / 1000)
            succeeded = v1.Result.Succeeded(result_json=json.dumps(value).encode())
            if succeeded.ByteSize() > self.nats.max_payload - 1024:
                return v1.Result(failed_fatal=v1.Result.FailedFatal(error="the result does not fit into a message"))
            return v1.Result(succeeded=succeeded)
        except asyncio.TimeoutError:
            return v1.Result(timed_out=v1.Result.TimedOut())
        except Exception as error:  # Whatever a handler raises is its job's failure, not the worker's.
            return v1.Result(failed_retryable=v1.Result.FailedRetryable(error=str(error)))

    async def tell(self, attempt, result):
        """Tells a result until it is acknowledged: it is kept, and in every inventory, until then."""
        result.job_id, result.token = attempt.assignment.job_id, attempt.assignment.token
        body = v1.WorkerMessage(session=self.session, results=[result]).SerializeToString()
        # The same message whenever it is sent, so that it is stored once.
        headers = {"Nats-Msg-Id": f"{result.token}:result"}
        while result.token in self.attempts:
            # The process that holds this worker; without one, anybody.
            subject = f"sys.job.result.{self.address}" if self.address else "sys.job.result"
            try:
                answer = await self.nats.request(subject, body, timeout=ANSWER_WITHIN, headers=headers)
            except nats.errors.TimeoutError:
                continue
            except nats.errors.Error:
                # Nobody listens, or there is no connection now. It is told again.
                await asyncio.sleep(1)
                continue
            if (answer.headers or {}).get("Nats-Service-Error-Code") is None:
                self.acknowledge(v1.ServerMessage.FromString(answer.data).acks)
            else:
                await asyncio.sleep(1)

    def acknowledge(self, acks):
        for ack in acks:
            self.attempts.pop(ack.token, None)

    async def stop(self, token):
        """The attempt no longer counts. Its place is free when nothing of it is left."""
        attempt = self.attempts.get(token)
        if attempt is not None:
            attempt.task.cancel()
            await asyncio.wait([attempt.task])
            self.attempts.pop(token, None)
        await self.say(let_go=[token])

    async def drain(self):
        """Takes nothing more, finishes what runs, and leaves when told that nothing can follow."""
        self.draining = True
        await self.say(draining=True)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nats", default="nats://127.0.0.1:4222", help="address of the NATS server")
    parser.add_argument("--id", default="python", help="name of this worker")
    parser.add_argument("--pool", default="default")
    parser.add_argument("--slots", type=int, default=4, help="jobs that run at once")
    options = parser.parse_args()
    connection = await nats.connect(options.nats, max_reconnect_attempts=-1, name=f"worker {options.id}")
    worker = Worker(connection, options)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, lambda: asyncio.ensure_future(worker.drain()))
    await worker.run()
    await connection.drain()


if __name__ == "__main__":
    asyncio.run(main())
