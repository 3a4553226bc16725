import asyncio

import pytest

from tests.contract.conftest import Stores
from tests.stored_values import NOW, at


async def test_a_connection_belongs_to_its_principal_until_it_is_removed(stores: Stores) -> None:
    await stores.connections.add("c1", "ada", NOW)
    await stores.connections.add("c2", "bob", NOW)
    assert await stores.connections.principal("c1") == "ada"
    await stores.connections.remove("c1")
    assert await stores.connections.principal("c1") is None
    assert await stores.connections.principal("c2") == "bob"


async def test_an_unknown_connection_has_no_principal_and_can_be_removed(stores: Stores) -> None:
    assert await stores.connections.principal("nobody") is None
    await stores.connections.remove("nobody")


@pytest.mark.spec("LIFE-6")
async def test_a_connection_added_twice_is_one(stores: Stores) -> None:
    await asyncio.gather(*(stores.connections.add("c1", "ada", NOW) for _ in range(4)))
    assert await stores.connections.principal("c1") == "ada"
    assert await stores.connections.remove_older(at(1)) == 1


@pytest.mark.spec("ISO-2")
async def test_ids_differ_by_case(stores: Stores) -> None:
    await stores.connections.add("AbC=", "ada", NOW)
    assert await stores.connections.principal("abc=") is None
    await stores.connections.add("abc=", "bob", NOW)
    assert await stores.connections.principal("AbC=") == "ada"


async def test_only_older_connections_are_swept(stores: Stores) -> None:
    await stores.connections.add("old", "ada", at(-0.000001))
    await stores.connections.add("edge", "ada", NOW)
    await stores.connections.add("new", "ada", at(1))
    assert await stores.connections.remove_older(NOW) == 1
    assert await stores.connections.principal("old") is None
    assert await stores.connections.principal("edge") == "ada"
    assert await stores.connections.remove_older(NOW) == 0


async def test_the_sweep_of_connections_removes_their_cancel_rows_too(stores: Stores) -> None:
    await stores.cancels.cancel_connection("old", at(-1))
    await stores.cancels.cancel_connection("new", NOW)
    assert await stores.connections.remove_older(NOW) == 0
    assert await stores.cancels.pending("any", "old") is None
    assert await stores.cancels.pending("any", "new") is not None
