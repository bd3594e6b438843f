"""Messages of the Claude Agent SDK, made of its own classes, as a run of it yields them: no model is behind it."""

from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock, ToolResultBlock, ToolUseBlock, UserMessage


async def result(message):
    order = message.split()[-1].rstrip("?")
    called = AssistantMessage(content=[ToolUseBlock(id="c1", name="lookup", input={"order": order})], model="m")
    gave = UserMessage(content=[ToolResultBlock(tool_use_id="c1", content='{"status": "shipped"}')])
    said = AssistantMessage(content=[TextBlock(text="It has shipped.")], model="m")
    reason = "max_tokens" if order == "Z9" else "end_turn"
    ended = ResultMessage(
        subtype="success",
        duration_ms=1,
        duration_api_ms=1,
        is_error=False,
        num_turns=2,
        session_id=order,
        stop_reason=reason,
        total_cost_usd=0.25,
        usage={"input_tokens": 20, "output_tokens": 10},
        result="It has shipped.",
    )
    return [called, gave, said, ended]
