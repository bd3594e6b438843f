def ask(message):
    return {"output": "A1 has shipped.", "tool_calls": [{"name": "lookup", "arguments": {}}]}
