"""Payloads are checked against type hints before the handler sees them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Literal, Optional, TypedDict, Union
from uuid import UUID

import pydantic
import pytest

from lockgate import AsyncClient, JobFailed, SetupError, Worker
from lockgate._decode import Misfit, reader
from lockgate._encode import to_json

from .conftest import PATIENCE, Serve


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: UUID
    items: list[Item]
    due: date | None = None
    colour: Colour = Colour.RED
    size: Literal["s", "m"] = "m"
    notes: dict[str, str] = field(default_factory=dict)


class Tree(pydantic.BaseModel):
    name: str
    leaves: list[int] = []


class Point(TypedDict, total=False):
    x: float
    y: float


ORDER = {"id": "12345678-1234-5678-1234-567812345678", "items": [{"sku": "a"}]}


async def test_a_handler_gets_what_its_hint_names(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("payload.order")
    async def order(order: Order) -> Order:
        assert isinstance(order.items[0], Item) and order.colour is Colour.BLUE
        order.items.append(Item("b", 2))
        return order

    @worker.handler("payload.tree")
    def tree(payload: Tree) -> Tree:
        return Tree(name=payload.name.upper(), leaves=payload.leaves[::-1])

    await serve(worker)
    job = await client.submit("payload.order", {**ORDER, "colour": "blue", "due": "2030-01-31"})
    result = await job.result(Order, timeout=PATIENCE)
    assert result.items == [Item("a"), Item("b", 2)] and result.due == date(2030, 1, 31)
    leaf = await client.submit("payload.tree", Tree(name="oak", leaves=[1, 2]))
    assert await leaf.result(Tree, timeout=PATIENCE) == Tree(name="OAK", leaves=[2, 1])


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({**ORDER, "items": [{"skuu": "a"}]}, "field `items[0].skuu`: is not known; Item has sku, count"),
        ({**ORDER, "items": [{}]}, "field `items[0].sku`: is missing"),
        ({**ORDER, "items": [{"sku": 1}]}, "field `items[0].sku`: must be a str, not an int"),
        ({**ORDER, "size": "xl"}, "field `size`: must be one of 's', 'm', not 'xl'"),
        ({**ORDER, "id": "x"}, "field `id`: must be a UUID, not 'x'"),
        ("text", "must be an object (Order), not a str"),
    ],
)
async def test_a_payload_that_does_not_fit_is_fatal_and_names_the_field(
    client: AsyncClient, worker: Worker, serve: Serve, payload: object, said: str
) -> None:
    called: list[Order] = []

    @worker.handler("payload.strict")
    async def strict(order: Order) -> None:
        called.append(order)

    await serve(worker)
    with pytest.raises(JobFailed) as failed:
        await (await client.submit("payload.strict", payload, max_attempts=5)).result(timeout=PATIENCE)
    assert failed.value.job.attempts == 1
    assert failed.value.job.last_error is not None
    assert failed.value.job.last_error.message == f"bad payload: {said}"
    assert not called


async def test_a_pydantic_error_names_the_field_too(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("payload.pydantic")
    async def grow(tree: Tree) -> None: ...

    await serve(worker)
    job = await client.submit("payload.pydantic", {"name": "oak", "leaves": [1, "two"]})
    with pytest.raises(JobFailed, match=r"bad payload: field `leaves\[1\]`: Input should be a valid integer"):
        await job.result(timeout=PATIENCE)


async def test_unknown_fields_can_be_ignored(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @worker.handler("payload.lenient", unknown_fields="ignore")
    async def lenient(item: Item) -> str:
        return item.sku

    await serve(worker)
    job = await client.submit("payload.lenient", {"sku": "a", "new": True})
    assert await job.result(timeout=PATIENCE) == "a"


async def test_a_type_inside_of_a_function_is_found(client: AsyncClient, worker: Worker, serve: Serve) -> None:
    @dataclass
    class Local:
        n: int

    @worker.handler("payload.local")
    async def local(payload: Local) -> int:
        return payload.n

    await serve(worker)
    assert await (await client.submit("payload.local", {"n": 3})).result(timeout=PATIENCE) == 3


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (Any, {"a": [1]}, {"a": [1]}),
        (None, None, None),
        (Optional[int], None, None),  # noqa: UP045
        (Union[int, str], "a", "a"),  # noqa: UP007
        (int | list[int], [1], [1]),
        (float, 1, 1.0),
        (int, 100.0, 100),
        (bool, True, True),
        (tuple[int, ...], [1, 2], (1, 2)),
        (dict[str, list[Item]], {"a": [{"sku": "b"}]}, {"a": [Item("b")]}),
        (datetime, "2030-01-31T08:00:00Z", datetime(2030, 1, 31, 8, tzinfo=timezone.utc)),
        (Decimal, "1.10", Decimal("1.10")),
        (Point, {"x": 1}, {"x": 1.0}),
        (list, [1, "a"], [1, "a"]),
    ],
)
def test_types_that_can_be_read(hint: Any, value: object, read: object) -> None:
    assert reader(hint)(value, "") == read


@pytest.mark.parametrize(
    ("hint", "value", "said"),
    [
        (int, True, "must be an int, not a bool"),
        (int, 1.5, "must be an int, not a float"),
        (int | None, "a", "must be int or null, not a str"),
        (dict[str, int], {"a": "b"}, "field `a`: must be an int, not a str"),
        (Item | None, {"sku": 1}, "field `sku`: must be a str, not an int"),
        (Point, {"z": 1}, "field `z`: is not known; Point has x, y"),
        (list[int], {}, "must be a list, not an object"),
        (datetime, "soon", "must be a time such as 2030-01-31T08:00:00Z, not 'soon'"),
        (Colour, "green", "must be one of 'red', 'blue', not 'green'"),
    ],
)
def test_values_that_do_not_fit(hint: Any, value: object, said: str) -> None:
    with pytest.raises(Misfit) as misfit:
        reader(hint)(value, "")
    assert str(misfit.value) == said


@pytest.mark.parametrize("hint", [complex, dict[int, str], set[int], object.__init__])
def test_types_that_json_cannot_hold_are_refused_when_the_handler_is_registered(hint: Any) -> None:
    with pytest.raises(SetupError, match="no type that JSON can be read as"):
        reader(hint)


def test_values_are_written_as_json() -> None:
    order = Order(UUID(int=1), [Item("ä")], date(2030, 1, 31), Colour.BLUE)
    assert '"items":[{"sku":"ä","count":1}],"due":"2030-01-31","colour":"blue"' in to_json(order)
    assert to_json([Decimal("1.10"), Tree(name="oak")]) == '["1.10",{"name":"oak","leaves":[]}]'
