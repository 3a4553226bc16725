"""Authorizer of $connect: lets in who brings an access token of the configured issuer (SEC-5).

A token that proves nothing ends in 401: a new one may help. A genuine token that isn't for this service gets a denying
policy, which is 403: another of its kind would not help. Where it can't be known the function fails, which is 500:
nobody takes an outage for a refused sign-in.
"""

from typing import Any, NoReturn

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.application.defects import place_of
from superbizagent.errors import (
    ConfigurationError,
    InternalFailure,
    IssuerUnavailable,
    SignInError,
    SuperBizAgentError,
    TokenNotForUs,
)
from superbizagent.events import AuthorizerEvent

logger = Logger(service="superbizagent")
metrics = Metrics()


# Its event holds the token: log_event stays off, whatever POWERTOOLS_LOGGER_LOG_EVENT says.
@logger.inject_lambda_context(log_event=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    try:
        asked = AuthorizerEvent.model_validate(event)
        principal = bootstrap.run(bootstrap.services().principal_of(asked))
    except TokenNotForUs as error:
        _refused(error)
        return _policy("nobody", "Deny", asked.method_arn)
    except (ConfigurationError, IssuerUnavailable) as error:
        logger.error("sign-in not decided", extra={"code": error.code, "reason": str(error)})
        _fail(error.code)
    except SignInError as error:
        _refused(error)
        # To the letter: the gateway turns this text, and no other, into 401.
        raise RuntimeError("Unauthorized") from None
    except Exception as error:
        logger.error("sign-in failed", extra={"defect": place_of(error)})
        _fail(InternalFailure.code)
    metrics.add_metric(name="SignIns", unit=MetricUnit.Count, value=1)
    return _policy(principal, "Allow", asked.method_arn)


def _refused(error: SuperBizAgentError) -> None:
    logger.info("sign-in refused", extra={"code": error.code, "reason": str(error)})
    metrics.add_metric(name="SignInsRefused", unit=MetricUnit.Count, value=1)


def _fail(code: str) -> NoReturn:
    """The platform logs what is raised, with all that led to it: nothing but a code may."""
    metrics.add_metric(name="SignInsUndecided", unit=MetricUnit.Count, value=1)
    raise RuntimeError(code) from None


def _policy(principal: str, effect: str, method_arn: str) -> dict[str, Any]:
    """For this one handshake: WebSocket APIs keep no authorizer's answer, so that it need cover no other route."""
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": method_arn}
    return {"principalId": principal, "policyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
