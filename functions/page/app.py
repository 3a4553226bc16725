"""page, when a stack is deployed: puts the page's files where CloudFront serves them from, and takes them away again.

A custom resource of CloudFormation, because nothing else of a deployment writes into a bucket: `sam deploy` is then all
there is to do, and a stack that is deleted leaves no bucket in its way.
"""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_pascal

from superbizagent import bootstrap
from superbizagent.custom_resource import CustomResource, told

logger = Logger(service="superbizagent")


class PageProperties(BaseModel):
    """The bucket's name, and what the page reads of its service as config.json."""

    model_config = ConfigDict(alias_generator=to_pascal, frozen=True)

    bucket: str
    config: dict[str, Any]


# Its event holds the address that lets in an answer: log_event stays off.
@logger.inject_lambda_context(log_event=False)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    resource = bootstrap.services().custom_resource(event, lambda: context.get_remaining_time_in_millis() / 1000)
    with resource:
        _deploy(resource, context.log_stream_name)


def _deploy(resource: CustomResource, log_stream: str) -> None:
    try:
        page = PageProperties.model_validate(resource.event.resource_properties)
        bucket = bootstrap.services().page_bucket(page.bucket)
        if resource.event.request_type == "Delete":
            bucket.empty()
        else:
            bucket.publish(page.config)
    except Exception as error:
        reason = told(error)
    else:
        resource.succeed()
        return
    resource.fail(f"{reason} See log stream {log_stream}.")
