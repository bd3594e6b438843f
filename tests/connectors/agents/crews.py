"""Crews of CrewAI whose outputs show their calls, and some whose outputs cannot; the message says which."""

import os

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


@tool("lookup_order")
def lookup_order(order_id: str) -> str:
    """What is known of an order."""
    return '{"status": "shipped"}'


def support(**options):
    return Agent(role="support", goal="Help.", backstory="Old.", llm="gpt-5-mini", tools=[lookup_order], **options)


def task(agent, question):
    return Task(description=question, expected_output="One sentence.", agent=agent)


def two_tasks():
    first, second = support(), support()
    return Crew(agents=[first, second], tasks=[task(first, "Where is A1?"), task(second, "Where is B2?")]).kickoff()


def alone():
    return support().kickoff("Where is A1?")


def used_before():
    agent = support()
    crew = Crew(agents=[agent], tasks=[task(agent, "Where is A1?")])
    crew.kickoff()
    return crew.kickoff()


def refused_once():
    """A guardrail that does not take the first answer: the task is done again, and its first messages are gone."""
    seen = []

    def guard(output):
        seen.append(output)
        return (len(seen) > 1, output.raw if len(seen) > 1 else "Say it again.")

    agent = support()
    again = Task(description="Where is A1?", expected_output="One sentence.", agent=agent, guardrail=guard)
    return Crew(agents=[agent], tasks=[again]).kickoff()


def shared_model():
    """A model object that answered another question before: CrewAI counts the tokens of both."""
    model = LLM(model="gpt-5-mini")
    for question in ("Where is B2?", "Where is A1?"):
        agent = Agent(role="support", goal="Help.", backstory="Old.", llm=model, tools=[lookup_order])
        told = Crew(agents=[agent], tasks=[task(agent, question)]).kickoff()
    return told


def failing():
    @tool("lookup_order")
    def broken(order_id: str) -> str:
        """What is known of an order."""
        raise LookupError("no such order")

    agent = Agent(role="support", goal="Help.", backstory="Old.", llm="gpt-5-mini", tools=[broken])
    return Crew(agents=[agent], tasks=[task(agent, "Where is A1?")]).kickoff()


def answer(message):
    return {
        "two tasks": two_tasks,
        "alone": alone,
        "used before": used_before,
        "refused once": refused_once,
        "shared model": shared_model,
        "failing": failing,
    }[message]()
