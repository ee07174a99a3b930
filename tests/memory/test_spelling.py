"""Which words are spelled alike, in a vocabulary that changes."""

from __future__ import annotations

from tui_agent.memory.spelling import Spellings, alike, similarity


def of(*words: str) -> Spellings:
    found = Spellings()
    for word in words:
        found.add(word)
    return found


def test_a_typo_and_another_ending_are_near_and_strangers_are_not() -> None:
    words = of("brama", "deployment", "deploy", "gateway", "kubernetes")
    assert [word for word, _ in words.near("gatewya", 0.58)] == ["gateway"]
    assert {word for word, _ in words.near("deployed", 0.58)} == {"deploy", "deployment"}
    assert words.near("zebra", 0.58) == []


def test_the_most_alike_comes_first_with_its_likeness_and_the_word_itself_is_left_out() -> None:
    found = of("payment", "payments", "paymaster").near("payment", 0.5)
    assert found == sorted(found, key=lambda pair: -pair[1])
    assert found[0] == ("payments", similarity("payment", "payments"))
    assert "payment" not in dict(found)


def test_a_word_that_was_taken_out_is_not_found_and_one_that_comes_again_is() -> None:
    words = of("gateway", "payment")
    words.discard("gateway")
    assert words.near("gatewya", 0.5) == []
    assert len(words) == 1
    words.add("gateway")
    assert [word for word, _ in words.near("gatewya", 0.5)] == ["gateway"]


def test_when_most_words_have_gone_the_rest_is_still_found() -> None:
    words = of(
        *(f"word{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}x" for n in range(1600)), "gateway"
    )
    for n in range(1500):
        words.discard(f"word{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}x")
    assert len(words) == 101
    assert [word for word, _ in words.near("gatewya", 0.5)] == ["gateway"]


def test_two_edits_are_forgiven_in_long_words_only_and_an_ending_of_up_to_four_letters() -> None:
    words = of("konfiguracja", "port", "postgres", "deploymentsset")
    assert [word for word, _ in words.near("konifguracjo", 0.5)] == ["konfiguracja"]
    assert words.near("pxrx", 0.5) == []
    assert [word for word, _ in words.near("deployments", 0.5)] == ["deploymentsset"]
    assert words.near("deploy", 0.5) == []


def test_what_is_alike_is_the_same_whichever_way_it_is_asked() -> None:
    terms = ["brama", "bramy", "gateway", "gatewya", "port"]
    for word in terms:
        assert alike(word, terms, 0.5) == [(term, s) for term in terms if (s := similarity(word, term)) >= 0.5]
    assert alike("brama", [], 0.5) == []


def test_numbers_have_no_similar_spellings() -> None:
    assert of("7443", "python2").near("7433", 0.1) == []
    assert of("python2").near("python3", 0.1) == []
