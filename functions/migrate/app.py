"""migrate, when a stack is deployed: brings the database forward before the code that needs it. Also by hand.

As a custom resource of CloudFormation; or invoked with {"action": "upgrade"} or {"action": "current"}.
"""

import contextlib
from typing import Any, Literal

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel

from migrations.run import LOCK_SECONDS, TIMEOUTS, Progress, current, known_revisions, roll_forward
from superbizagent import bootstrap
from superbizagent.custom_resource import CustomResource, told

logger = Logger(service="superbizagent")


class ByHand(BaseModel):
    action: Literal["upgrade", "current"]


# Its event holds the address that lets in an answer: log_event stays off.
@logger.inject_lambda_context(log_event=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any] | None:
    if "ResponseURL" not in event:
        return _by_hand(ByHand.model_validate(event))
    resource = bootstrap.services().custom_resource(event, lambda: context.get_remaining_time_in_millis() / 1000)
    with resource:
        _deploy(resource, context.log_stream_name)
    return None


def _deploy(resource: CustomResource, log_stream: str) -> None:
    if resource.event.request_type == "Delete":
        # The rows outlive the stack; whoever wants them gone deletes the database.
        resource.succeed()
        return
    try:
        done = _upgrade(resource.work_seconds)
    except Exception as error:
        reason = told(error)
    else:
        resource.succeed({"Outcome": _outcome(done), "Revision": done.after or ""})
        return
    resource.fail(f"{reason} See log stream {log_stream}.")


def _by_hand(asked: ByHand) -> dict[str, Any]:
    try:
        if asked.action == "upgrade":
            done = _upgrade(LOCK_SECONDS)
            return {"outcome": _outcome(done), "before": done.before, "after": done.after}
        with contextlib.closing(bootstrap.services().open_database(TIMEOUTS)) as database:
            return {"revision": current(database.engine), "newest": known_revisions()[0]}
    except Exception as error:
        # The platform logs what is raised, with all that led to it.
        raise RuntimeError(told(error)) from None


def _upgrade(seconds: float) -> Progress:
    with contextlib.closing(bootstrap.services().open_database(TIMEOUTS)) as database:
        done = roll_forward(database.engine, min(LOCK_SECONDS, seconds / 2))
        # After the tables: rights on a schema that is there.
        bootstrap.services().provide_account(database)
    logger.info("database migrated", extra={"before": done.before, "after": done.after, "newer": done.newer})
    return done


def _outcome(done: Progress) -> str:
    if done.newer:
        return "NEWER_THAN_CODE"
    return "UP_TO_DATE" if done.before == done.after else "MIGRATED"
