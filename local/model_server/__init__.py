"""A scripted server of the OpenAI chat protocol: rules instead of a model, to try things out and to test.

It answers the calls that the assistant makes, from nothing but what their messages say.
"""

from local.model_server.server import MODEL, RequestRecord, ScriptedModelServer

__all__ = ["MODEL", "RequestRecord", "ScriptedModelServer"]
