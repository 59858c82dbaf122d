"""An agent that settles tickets. It calls its tools as child jobs, so policy judges each call, and a person approves large refunds.

While it waits it holds no slot, and a worker that is killed loses nothing: the next attempt finds the children of the one before.
"""

from dataclasses import dataclass

from lockgate import AwaitChildren, Child, Context, Fatal, SyncContext, Worker

ORDERS = {"o-17": 250, "o-18": 40}

worker = Worker()


@dataclass
class Ticket:
    order: str
    complaint: str


@dataclass
class Refund:
    order: str
    amount: int


@worker.handler("agent.ticket")
async def settle(ctx: Context, ticket: Ticket) -> str:
    children = {child.key: child for child in await ctx.children()}
    if "lookup" not in children:
        await ctx.submit_children([Child("lookup", "tool.lookup", ticket.order)])
        raise AwaitChildren(timeout=60)
    if "refund" not in children:
        # A model would decide here, from the complaint and what the tool has found.
        ctx.progress(50, "asks for a refund")
        refund = Refund(ticket.order, amount=children["lookup"].result)
        await ctx.submit_children([Child("refund", "tool.refund", refund, labels={"ticket": ctx.job_id})])
        raise AwaitChildren(timeout=3600)
    outcome = children["refund"]
    return outcome.result if outcome.succeeded else f"no refund: {outcome.message or outcome.reason}"


@worker.handler("tool.lookup")
def lookup(order: str) -> int:
    if order not in ORDERS:
        raise Fatal(f"there is no order {order}")
    return ORDERS[order]


@worker.handler("tool.refund")
def refund(ctx: SyncContext, refund: Refund) -> str:
    ctx.log(f"pays back {refund.amount}")
    return f"refunded {refund.amount} for {refund.order}"


if __name__ == "__main__":
    worker.run()
