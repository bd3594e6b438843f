"""Events of google-adk, from its own runner with a scripted model."""

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is not None:
            part = types.Part(text="It has shipped.")
        else:
            order = last.text.split()[-1].rstrip("?")
            part = types.Part(function_call=types.FunctionCall(id="c1", name="lookup", args={"order": order}))
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=5)
        reason = types.FinishReason.MAX_TOKENS if "Z9" in str(llm_request.contents) else types.FinishReason.STOP
        said = types.Content(role="model", parts=[part])
        yield LlmResponse(content=said, usage_metadata=usage, finish_reason=reason)


def lookup(order: str) -> dict:
    """The status of an order."""
    return {"status": "shipped"}


agent = LlmAgent(name="support", model=Scripted(model="m"), tools=[lookup])


async def result(message, session_id):
    runner = InMemoryRunner(agent=agent, app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="u", session_id=session_id)
    said = types.Content(role="user", parts=[types.Part(text=message)])
    return [event async for event in runner.run_async(user_id="u", session_id=session_id, new_message=said)]
