"""What is said to and by a model, in no vendor's words."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

JsonSchema = dict[str, Any]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class ToolCall(_Value):
    """A call the model asks for. `arguments` is its raw text, which may not be JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Message(_Value):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


class ToolSpec(_Value):
    """A tool as the model sees it; `parameters` is its JSON schema."""

    name: str
    description: str
    parameters: JsonSchema


class OutputSchema(_Value):
    """The JSON schema that a one-shot answer has to fit."""

    name: str
    definition: JsonSchema


class ModelRequest(_Value):
    """One call. With `tools` the model has to call one; with `output` it has to answer in that schema."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output: OutputSchema | None = None
    max_output_tokens: int

    @property
    def purpose(self) -> str:
        """What the call is for, in a word of ours: the name of its output, or what it asks for instead of one."""
        if self.output is not None:
            return self.output.name
        return "tool_calls" if self.tools else "text"

    @property
    def estimated_tokens(self) -> int:
        """A high estimate of what the call may be billed: three bytes a token, and the whole output.

        A Chinese character has three bytes and is about one token; English prose has four or more a token.
        """
        size = len(self.model_dump_json(exclude={"max_output_tokens"}).encode("utf-8", "replace"))
        return size // 3 + self.max_output_tokens


class ModelReply(_Value):
    """`tokens`: what the server says it billed, None if it doesn't. `cut`: the output limit ended it."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: int | None = None
    cut: bool = False
