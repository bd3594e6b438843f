def respond(message: str) -> str:
    return message.replace("Where is ", "").replace("?", " has shipped.")
