"""What a process writes, line by line."""

import asyncio
import os
from collections.abc import Callable


async def forward_lines(descriptor: int, write: Callable[[str], None]) -> None:
    """Reads until every writer has closed the pipe, or until it is cancelled; closes the descriptor."""
    stream = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), pipe
    )
    rest = b""
    try:
        while chunk := await stream.read(65_536):
            # AWS's client separates the lines of one record by carriage returns.
            *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                write(line.decode(errors="replace"))
        if rest:
            write(rest.decode(errors="replace"))
    finally:
        transport.close()
