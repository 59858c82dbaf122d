"""Files two tickets as ann, and answers as bob what the agent may not do alone."""

import asyncio

from lockgate import AsyncClient, JobEvent


async def main() -> None:
    ann, bob = AsyncClient(actor="ann"), AsyncClient(actor="bob")
    small = await ann.submit("agent.ticket", {"order": "o-18", "complaint": "torn"}, idempotency_key="ticket-1")
    print(await small.result(timeout=60))

    large = await ann.submit("agent.ticket", {"order": "o-17", "complaint": "never came"}, idempotency_key="ticket-2")
    async for update in large.watch():
        # The agent waits: for its lookup first, then for the refund and the person.
        if isinstance(update, JobEvent) and update.kind == "waiting_for_children":
            for approval in await bob.approvals():
                print(f"{approval.submitter} asks for {approval.payload}: {approval.reason}")
                await bob.approve(approval, "a good customer")
    print(await large.result(timeout=60))


asyncio.run(main())
