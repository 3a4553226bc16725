"""Where a defect happened, for the log: the text of a foreign error may quote queries, rows or secrets (SEC-4)."""

import traceback
from pathlib import PurePath


def place_of(error: BaseException) -> str:
    """The error's type and innermost place, such as `KeyError at release.py:120 in _source`."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    last = frames[-1]
    return f"{type(error).__name__} at {PurePath(last.filename).name}:{last.lineno} in {last.name}"
