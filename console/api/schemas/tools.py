"""An agent's tools: listed as one model's API or another's wants them, and called."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .shared import Answer, Body, OneLine, shown

ToolFormat = Literal["openai", "anthropic", "mcp"]
Conversation = Annotated[OneLine, Field(min_length=1, max_length=200)]


class Tools(Answer):
    toolset: Literal[1, 2] = Field(description="As pinned in the agent's Agent Tools.")
    format: ToolFormat
    tools: list[dict[str, Any]] = Field(description="To be handed to a model's API as they are.")


class NewToolCall(Body):
    """What a model asked for, as it asked for it."""

    model_config = shown(conversation="first", arguments={"command": "ls -l"})
    MAY_HOLD_NUL = frozenset({"arguments"})
    conversation: Conversation = Field(
        description="Any name of your choice. Its sandbox is made when first needed, and is the same until it ends."
    )
    arguments: dict[str, Any] = Field(description="As the tool's schema says.")
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside it.")
    parent_action: str = Field("", max_length=40, description="The action that this one follows from.")
