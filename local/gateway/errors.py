"""What can go wrong in the gateway itself, as opposed to in a function it runs.

GatewayError
├── ConfigurationError        an option or a file named by an option is wrong
├── TemplateError             the template cannot be read or says something impossible
│   └── Unsupported           the template is right, but this tool does not follow that part of it
└── CallError                 answered to the caller of an API of this gateway
    ├── Gone                  no such connection (any more, or not yet)
    ├── PayloadTooLarge
    ├── Forbidden
    ├── BadRequest
    └── FunctionNotFound
"""


class GatewayError(Exception):
    """The message is a sentence that says what to do; it is shown without a traceback."""


class ConfigurationError(GatewayError):
    pass


class TemplateError(GatewayError):
    pass


class Unsupported(TemplateError):
    pass


class CallError(GatewayError):
    status = 500
    code = "InternalServerError"


class Gone(CallError):
    status = 410
    code = "GoneException"


class PayloadTooLarge(CallError):
    status = 413
    code = "PayloadTooLargeException"


class Forbidden(CallError):
    status = 403
    code = "ForbiddenException"


class BadRequest(CallError):
    status = 400
    code = "BadRequestException"


class FunctionNotFound(CallError):
    status = 404
    code = "ResourceNotFoundException"
