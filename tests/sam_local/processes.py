"""A program run to its end, or ended when its time is up."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ENDING_SECONDS = 30.0
"""SAM CLI ends its container when it is told to end."""


class Failed(Exception):
    """A sentence for the person who waits."""


@dataclass(frozen=True)
class Finished:
    output: str
    errors: str
    status: int
    seconds: float


async def run(command: Sequence[str], variables: Mapping[str, str], folder: Path, seconds: float) -> Finished:
    """Raises Failed when it takes longer than `seconds`; it has ended then too."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command,
        env=variables,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise Failed(f"`{' '.join(command[:4])}` took longer than {seconds:.0f} s.") from error
    finally:
        await _end(process)
    assert process.returncode is not None
    return Finished(output.decode(), errors.decode(), process.returncode, time.monotonic() - began)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ENDING_SECONDS):
            # Reads on: a process that is ending may have more to say than a pipe holds.
            await process.communicate()
            return
    process.kill()
    await process.wait()
