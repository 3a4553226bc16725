"""Fires the schedules of functions, the first time after one period."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from local.gateway.clock import Clock, Tasks
from local.gateway.model import Function, Schedule, Stack
from local.gateway.runtime import Functions, Invocation


class Schedules:
    def __init__(self, stack: Stack, functions: Functions, clock: Clock) -> None:
        self._stack = stack
        self._functions = functions
        self._clock = clock
        self._tasks = Tasks()

    def start(self) -> None:
        for function in self._stack.functions.values():
            for schedule in function.schedules:
                self._tasks.start(self._fire(function, schedule, self._clock.now()))

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _fire(self, function: Function, schedule: Schedule, start: float) -> None:
        due = start
        while True:
            due += schedule.period
            await self._clock.sleep(max(0.0, due - self._clock.now()))
            event = schedule.input if schedule.input is not None else self._event(schedule)
            self._functions.submit(function.logical_id, Invocation(payload=json.dumps(event).encode()))

    def _event(self, schedule: Schedule) -> dict[str, Any]:
        stack = self._stack
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        classic = schedule.source == "aws.events"
        resource = (
            f"events:{stack.region}:{stack.account}:rule"
            if classic
            else (f"scheduler:{stack.region}:{stack.account}:schedule/default")
        )
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": schedule.source,
            "account": stack.account,
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": stack.region,
            "resources": [f"arn:aws:{resource}/{schedule.name}"],
            # EventBridge sends an object, the Scheduler a text.
            "detail": {} if classic else "{}",
        }
