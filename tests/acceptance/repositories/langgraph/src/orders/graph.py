from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from orders.tools import lookup

graph = create_agent(ChatOpenAI(model="m"), [lookup])
