"""A few big bodies on disk, two of them parsed at once, and none that takes a place for ever."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from console import doorman

NINE_MB = 9 << 20


def test_two_are_parsed_at_once_and_all_are_answered(served):
    def post(_):
        with served.connect() as client:
            client.send("POST /big HTTP/1.1", f"Content-Length: {NINE_MB}", body=bytes(NINE_MB))
            return client.answer().json["size"]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(post, range(6))) == [NINE_MB] * 6
    assert served.get("/seen")["parsed_at_once"] == 2


def parts(*sizes):
    """A receive that gives these, then waits for ever."""
    left = list(sizes)

    async def receive():
        if not left:
            await asyncio.sleep(3600)
        size = left.pop(0)
        return {"type": "http.request", "body": bytes(size), "more_body": size > 0}

    return receive


async def swallow(scope, receive, send):
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.request":
        await doorman.answer(send, 200, code="ok", detail="got it")


async def call(app, receive):
    statuses = []

    async def send(message):
        statuses.append(message.get("status"))

    await app({"type": "http", "headers": []}, receive, send)
    return statuses[0]


def test_one_that_never_ends_loses_its_place_and_is_told(monkeypatch):
    monkeypatch.setattr(doorman, "BIG_BODY_S", 0.05)
    monkeypatch.setattr(doorman, "BIG_BODIES_ARRIVING", 1)

    async def main():
        app = doorman.BigBodies(swallow)
        stuck = asyncio.create_task(call(app, parts(NINE_MB)))
        waits_for_the_place = asyncio.create_task(call(app, parts(NINE_MB, 1, 0)))
        return await stuck, await waits_for_the_place

    assert asyncio.run(main()) == (408, 200)


def test_a_small_body_needs_no_place(monkeypatch):
    monkeypatch.setattr(doorman, "BIG_BODIES_ARRIVING", 0)
    monkeypatch.setattr(doorman, "BIG_BODIES_PARSED", 0)

    async def main():
        return await call(doorman.BigBodies(swallow), parts(1 << 20, 0))

    assert asyncio.run(main()) == 200


def test_a_door_that_fails_gives_its_place_back(monkeypatch):
    monkeypatch.setattr(doorman, "BIG_BODIES_PARSED", 1)

    async def fails(scope, receive, send):
        await swallow(scope, receive, send)
        raise RuntimeError

    async def main():
        app = doorman.BigBodies(fails)
        results = await asyncio.gather(*[call(app, parts(NINE_MB, 0)) for _ in range(3)], return_exceptions=True)
        return [type(result) for result in results]

    assert asyncio.run(main()) == [RuntimeError] * 3
