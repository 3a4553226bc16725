"""Runs functions as Lambda does: child processes behind the Runtime API, frozen between events."""

from local.gateway.runtime.child import ChildInfo
from local.gateway.runtime.invocation import Invocation, Result
from local.gateway.runtime.service import Functions

__all__ = ["ChildInfo", "Functions", "Invocation", "Result"]
