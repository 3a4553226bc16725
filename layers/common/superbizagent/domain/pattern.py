"""Regular expressions that are compiled when they are first used."""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any


class Pattern:
    """What `re.compile` gives, compiled at its first use: all of them together take longer than the modules they are in
    take to load, and no run uses every one.

    A method is the compiled expression's own, kept: in a loop over lines it costs what that one costs.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.match

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.fullmatch

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        return self.compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:
        return self.compiled.findall

    @cached_property
    def split(self) -> Callable[..., list[Any]]:
        return self.compiled.split

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self.compiled.sub
