"""Addresses of model servers in all the forms people write them in."""

from __future__ import annotations

import pytest

from tui_agent.llm.errors import ServerUnreachable
from tui_agent.llm.host import parse_host


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (None, "http://127.0.0.1:11434"),
        ("", "http://127.0.0.1:11434"),
        ("  ", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        (":56789", "http://127.0.0.1:56789"),
        ("1.2.3.4:56789", "http://1.2.3.4:56789"),
        ("http://1.2.3.4", "http://1.2.3.4:80"),
        ("https://1.2.3.4", "https://1.2.3.4:443"),
        ("HTTPS://Example.com:56789", "https://example.com:56789"),
        ("example.com/", "http://example.com:11434"),
        ("example.com/path", "http://example.com:11434/path"),
        ("https://example.com:56789/a/b/", "https://example.com:56789/a/b"),
        ("http://h/ollama", "http://h:80/ollama"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:1", "http://[::1]:1"),
        ("::1", "http://[::1]:11434"),
        ("https://[0001:002:003:0004::1]/path", "https://[0001:002:003:0004::1]:443/path"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:11434"),
        ("[::]:8080", "http://[::1]:8080"),
        ("localhost", "http://localhost:11434"),
        ("'127.0.0.1:1'", "http://127.0.0.1:1"),
        ("my_host", "http://my_host:11434"),
        ("żółw.example", "http://żółw.example:11434"),
    ],
)
def test_every_form_of_ollama_host_gives_the_url_ollama_means(given: str | None, url: str) -> None:
    assert parse_host(given).url == url


@pytest.mark.parametrize(
    "given", ["h:port", "h:99999", "h:0", "ftp://h", "http://a b", "h:1:2", "[::1", "http://h<script>", "h\x1b[31m"]
)
def test_what_is_no_address_is_refused_in_a_sentence_that_shows_the_form(given: str) -> None:
    with pytest.raises(ServerUnreachable) as caught:
        parse_host(given)
    assert "http://127.0.0.1:11434" in caught.value.fix
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "loopback", "private"),
    [
        (None, True, True),
        ("localhost", True, True),
        ("LOCALHOST.", True, True),
        ("127.8.9.1", True, True),
        ("[::1]", True, True),
        ("[::ffff:127.0.0.1]", True, True),
        ("0.0.0.0", True, True),
        ("192.168.1.7", False, True),
        ("[fe80::1]", False, True),
        ("host.docker.internal", False, True),
        ("box", False, True),
        ("box.local", False, True),
        ("evil.localhost", False, True),
        ("127.0.0.1.example.com", False, False),
        ("8.8.8.8", False, False),
        ("[::ffff:8.8.8.8]", False, False),
        ("ollama.example.com", False, False),
        ("2130706433", False, True),
    ],
)
def test_only_sure_loopback_counts_as_this_machine(given: str | None, loopback: bool, private: bool) -> None:
    host = parse_host(given)
    assert (host.loopback, host.private) == (loopback, private)


def test_only_names_that_mean_both_families_have_other_addresses_to_try() -> None:
    assert [h.url for h in parse_host("localhost:1").others({"127.0.0.1"})] == ["http://[::1]:1"]
    assert [h.url for h in parse_host(None).others({"127.0.0.1"})] == ["http://[::1]:11434"]
    assert parse_host("localhost").others({"127.0.0.1", "::1"}) == []
    assert parse_host("127.0.0.1").others({"127.0.0.1"}) == []
    assert parse_host("example.com").others(set()) == []


def test_user_and_password_are_taken_apart_and_never_shown() -> None:
    word = "p%40ss" + "w"
    host = parse_host(f"http://ada:{word}@127.0.0.1:8080/x")
    assert (host.user, host.password) == ("ada", "p@ssw")
    assert host.url == "http://127.0.0.1:8080/x"
    assert host.given == "http://127.0.0.1:8080/x"
    assert "p@ss" not in repr(host)
    with pytest.raises(ServerUnreachable) as caught:
        parse_host(f"ftp://ada:{word}@h")
    assert word not in str(caught.value)
