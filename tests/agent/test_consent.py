"""Nothing leaves the machine without a yes, and one yes is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.agent.consent import CLOUD, Consent, leaves_to
from tui_agent.llm.errors import ConsentNeeded, ModelError
from tui_agent.llm.types import ModelInfo
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings, load_settings


@pytest.fixture
def paths(tmp_path: Path) -> UserPaths:
    return UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("host", ["", "127.0.0.1:11434", "localhost", "[::1]:9999", "0.0.0.0", "::ffff:127.0.0.1"])
def test_this_machine_needs_no_yes(paths: UserPaths, host: str) -> None:
    assert Consent(paths, Settings()).allows(host)


@pytest.mark.parametrize(
    "host",
    ["box", "box:11434", "192.168.1.7", "https://models.example.com/ollama", "host.docker.internal:11434", "ftp://x"],
)
def test_everything_else_needs_one(paths: UserPaths, host: str) -> None:
    assert not Consent(paths, Settings()).allows(host)


def test_a_yes_is_kept_for_scheme_name_and_port_and_can_be_taken_back(paths: UserPaths) -> None:
    consent = Consent(paths, Settings())
    assert consent.allow("https://models.example.com/ollama") == "https://models.example.com"
    again = Consent(paths, Settings())
    assert again.allows("https://models.example.com:443/other/path")
    assert not again.allows("http://models.example.com")
    assert not again.allows("https://models.example.com:8443")
    assert not again.allows("https://other.example.com")
    assert again.forget("models.example.com")
    assert not again.allows("https://models.example.com")
    assert not again.forget("models.example.com")


def test_the_file_is_private_and_odd_lines_in_it_allow_nothing(paths: UserPaths) -> None:
    consent = Consent(paths, Settings())
    consent.allow("box")
    assert consent.path.stat().st_mode & 0o077 == 0
    consent.path.write_text("# mine\n\nftp://x\nhttp://other\n\x00\n", "utf-8")
    assert [one.host for one in consent.all()] == ["http://other"]
    assert not consent.allows("box")


def test_a_bare_name_in_the_settings_means_that_host_at_any_port(paths: UserPaths) -> None:
    consent = Consent(paths, Settings(allow_hosts=("box", "https://ollama.com")))
    assert consent.allows("http://box:11434")
    assert consent.allows("https://box")
    assert consent.allows("https://ollama.com")
    assert not consent.allows("http://ollama.com")


def test_allow_remote_allows_every_host(paths: UserPaths) -> None:
    assert Consent(paths, Settings(allow_remote=True)).allows("http://anywhere")


@pytest.mark.parametrize("given", ["box", "http://box:11434", "https://box.", "box:8000"])
def test_one_yes_for_a_machine_counts_for_the_vectors_too(paths: UserPaths, given: str) -> None:
    consent = Consent(paths, Settings())
    assert not consent.allows_machine("box")
    consent.allow(given)
    assert consent.allows_machine("box")
    assert not consent.allows_machine("other")
    assert Consent(UserPaths.find({"TUI_AGENT_HOME": "/nowhere"}), Settings(allow_hosts=(given,))).allows_machine("BOX")


def test_vectors_on_this_machine_need_no_yes_and_a_name_that_is_none_never_has_one(paths: UserPaths) -> None:
    assert Consent(paths, Settings()).allows_machine("127.0.0.1")
    assert Consent(paths, Settings(allow_remote=True)).allows_machine("box")
    assert not Consent(paths, Settings(allow_hosts=("box",))).allows_machine("bo x/..")
    assert not Consent(paths, Settings(allow_hosts=("bo x/..",))).allows_machine("bo x/..")
    assert Consent(paths, Settings(allow_hosts=("http://[box", "box"))).allows_machine("box")


def test_the_setting_is_a_list_in_the_users_file_and_a_project_cannot_give_consent(
    paths: UserPaths, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    (root / ".agent-memory").mkdir(parents=True)
    (root / ".agent-memory/config.yaml").write_text("allow_hosts: [http://evil]\n", "utf-8")
    paths.ensure().config_path.write_text("allow_hosts:\n  - http://box:11434\n  - ollama.com\n", "utf-8")
    loaded = load_settings(Project.open(root), paths, {})
    assert loaded.settings.allow_hosts == ("http://box:11434", "ollama.com")
    assert any("allow_hosts can be set only in your own config.yaml" in one.text for one in loaded.problems)
    assert load_settings(None, paths, {"TUI_AGENT_ALLOW_HOSTS": "a:1, b"}).settings.allow_hosts == ("a:1", "b")


def test_cloud_models_leave_to_where_they_run() -> None:
    assert leaves_to(ModelInfo("qwen3:4b")) == ""
    assert leaves_to(ModelInfo("gpt-oss:120b-cloud", remote=True)) == CLOUD
    assert leaves_to(ModelInfo("x", remote=True, remote_host="https://ollama.com:443")) == CLOUD
    assert leaves_to(ModelInfo("x", remote=True, remote_host="http://gpu:9")) == "http://gpu:9"
    assert leaves_to(ModelInfo("x", remote=True, remote_host="what is this")) == CLOUD


def test_a_cloud_model_is_refused_with_the_command_that_allows_it(paths: UserPaths) -> None:
    consent = Consent(paths, Settings())
    info = ModelInfo("gpt-oss:120b-cloud", remote=True)
    with pytest.raises(ConsentNeeded, match=r"tui-agent allow https://ollama\.com") as refused:
        consent.check_model(info)
    assert refused.value.host == CLOUD
    assert refused.value.exit_code == 2
    consent.allow(CLOUD)
    consent.check_model(info)


def test_an_address_that_is_none_cannot_be_allowed(paths: UserPaths) -> None:
    with pytest.raises(ModelError):
        Consent(paths, Settings()).allow("ftp://x")
