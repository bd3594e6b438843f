"""A support agent of the Claude Agent SDK. The gate calls `answer` and reads the messages of the run."""

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool


@tool("lookup_order", "What is known of an order.", {"order_id": str})
async def lookup_order(args):
    return {"content": [{"type": "text", "text": f'{{"order_id": "{args["order_id"]}", "status": "shipped"}}'}]}


@tool("refund_order", "Pays the price of an order back.", {"order_id": str})
async def refund_order(args):
    return {"content": [{"type": "text", "text": f'{{"order_id": "{args["order_id"]}", "refunded": true}}'}]}


shop = create_sdk_mcp_server("shop", tools=[lookup_order, refund_order])
sessions = {}


async def answer(message, session_id):
    options = ClaudeAgentOptions(
        model="claude-haiku-4-5",
        system_prompt="You are a support agent. Look an order up before you act on it.",
        mcp_servers={"shop": shop},
        tools=[],
        allowed_tools=["mcp__shop__lookup_order", "mcp__shop__refund_order"],
        setting_sources=[],
        env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        resume=sessions.get(session_id),
    )
    messages = [one async for one in query(prompt=message, options=options)]
    sessions[session_id] = next(one.session_id for one in messages if isinstance(one, ResultMessage))
    return messages
