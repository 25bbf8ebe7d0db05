"""Quack among the listeners of a server: at the address of HTTP, at its own, or not at all."""

from __future__ import annotations

import asyncio
import urllib.request
from dataclasses import replace

import pytest
from waiting import wait_until

from queryard.service.config import Address
from queryard.service.serving import Listeners
from tests.service.quack.plain_client import Client
from tests.service.yard_ground import a_ground

ANY = Address("127.0.0.1", 0)


@pytest.mark.parametrize(("http", "quack"), [(ANY, "http"), (ANY, ANY), (None, ANY), (ANY, None)])
def test_where_quack_is_spoken(tmp_path, http, quack):
    with a_ground(tmp_path) as ground:
        config = replace(ground.yard.config, http=http, postgres=None, quack=quack)

        def use(port: int) -> None:
            client = Client(port, ground.secrets["ann"])
            assert client.rows("SELECT count(*) FROM small") == [(3,)]
            client.close()

        async def main() -> None:
            listeners = Listeners(ground.yard)
            addresses = await listeners.open(config)
            try:
                if quack is None:
                    assert addresses.quack is None
                    with pytest.raises(AssertionError):  # another status than 200
                        await asyncio.to_thread(use, addresses.http.port)
                    return
                assert (addresses.quack == addresses.http) == (quack == "http")
                await asyncio.to_thread(use, addresses.quack.port)
                if http is not None:
                    url = f"http://127.0.0.1:{addresses.http.port}/healthz"
                    answer = await asyncio.to_thread(urllib.request.urlopen, url)
                    assert answer.status == 200
            finally:
                await listeners.close(0.0)

        asyncio.run(main())
    assert not ground.yard.clients(ground.principal("root"))


def test_a_server_that_stops_lets_a_query_end_and_then_says_so(tmp_path):
    with a_ground(tmp_path) as ground:
        config = replace(ground.yard.config, http=ANY, postgres=None)

        async def main() -> None:
            listeners = Listeners(ground.yard)
            port = (await listeners.open(config)).quack.port
            client = await asyncio.to_thread(Client, port, ground.secrets["ann"])
            slow = "SELECT count(*) FROM range(1000) a(i), range(20000) b(j) WHERE i * j % 7 = 3"
            query = asyncio.create_task(asyncio.to_thread(client.rows, slow))
            await asyncio.to_thread(wait_until, ground.yard.active)
            assert await listeners.drain(30.0, asyncio.Event()) == 0
            assert len(await query) == 1
            with pytest.raises(Exception, match="about to stop"):
                await asyncio.to_thread(client.rows, "SELECT 1")
            await listeners.close(0.0)

        asyncio.run(main())
