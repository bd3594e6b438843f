def answer(question: str) -> str:
    """A bot without a framework."""
    return f"You asked: {question}"


def main() -> None:
    print(answer(input()))
