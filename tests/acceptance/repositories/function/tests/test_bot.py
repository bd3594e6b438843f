from bot import answer


def test_answer() -> None:
    assert answer("x")
