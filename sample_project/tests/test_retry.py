import pytest

from parcels.retry import GaveUp, retry_it


def test_a_call_that_recovers_is_repeated_until_it_does():
    answers = iter([ConnectionError(), ConnectionError(), "ok"])

    def call():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    waits = []
    assert retry_it(call, sleep=waits.append, jitter=lambda: 0.0) == "ok"
    assert waits == [0.2, 0.4]


def test_it_gives_up_after_the_last_attempt():
    def call():
        raise ConnectionError("down")

    with pytest.raises(GaveUp, match="after 3 attempts"):
        retry_it(call, attempts=3, sleep=lambda seconds: None)
