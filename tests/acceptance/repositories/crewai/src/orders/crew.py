from crewai import Agent, Crew, Process, Task
from crewai.project import CrewBase, agent, crew, task
from crewai.tools import tool


@tool("lookup")
def lookup(order: str) -> str:
    """The state of an order."""
    return "shipped"


@CrewBase
class Orders:
    """Looks up orders."""

    agents_config: dict = {}
    tasks_config: dict = {}

    @agent
    def clerk(self) -> Agent:
        return Agent(role="clerk", goal="look up orders", backstory="none", llm="openai/gpt-4o-mini", tools=[lookup])

    @task
    def answer(self) -> Task:
        return Task(description="{message}", expected_output="a sentence", agent=self.clerk())

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks, process=Process.sequential)
