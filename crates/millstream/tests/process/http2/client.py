"""Requests of httpx over HTTP/2, many at once: `client.py BASE CA`."""
import asyncio
import ssl
import sys

import httpx


async def pieces():
    for number in range(100):
        yield b"%04d" % number * 250


async def main(base, authority):
    trusted = ssl.create_default_context(cafile=authority)
    trusted.check_hostname = False  # It is asked by its address.
    async with httpx.AsyncClient(http2=True, verify=trusted, timeout=20) as client:
        answers = await asyncio.gather(*(client.get(f"{base}/values?{n}") for n in range(300)))
        for number, answer in enumerate(answers):
            assert answer.http_version == "HTTP/2", answer.http_version
            assert answer.text == f"h2 {number}", answer.text
        large = await client.get(f"{base}/large")
        assert large.content == bytes(range(251)) * 8000, len(large.content)
        sent = await client.post(f"{base}/length", content=pieces())
        assert sent.text == "100000", sent.text
        missing = await client.get(f"{base}/missing")
        assert missing.status_code == 404, missing
        async with client.stream("GET", f"{base}/large") as left:
            # It leaves within the answer, and the connection goes on.
            async for _ in left.aiter_raw():
                break
        again = await client.get(f"{base}/values?x")
        assert again.text == "h2 x", again.text
    print("all is well")


asyncio.run(main(*sys.argv[1:]))
