"""Names defined and mentioned, in nine languages and in prose."""

from __future__ import annotations

import pytest

from tui_agent.memory.symbols import asked, extract, key

DEFINITIONS = {
    "python": (
        "class Retry:\n    limit = 3\n    async def retry_it(self, x):\n        local = 1\n        return backoff(x)\n"
        "\nMAX_TRIES: int = 5\n",
        {"Retry", "retry_it", "MAX_TRIES"},
        {"backoff"},
    ),
    "javascript": (
        "export default async function retryIt(a) {\n  const inner = 1;\n}\nexport const makeClient = (x) => x;\n"
        "class Foo extends Bar {\n  async doIt(a, b) {\n    return 1;\n  }\n}\nconst LIMIT = 5;\n"
        "module.exports.helper = function () {};",
        {"retryIt", "makeClient", "Foo", "doIt", "LIMIT", "helper"},
        {"Bar", "inner"},
    ),
    "typescript": (
        "export interface UserRow {\n  id: string;\n}\nexport type Handler = (x: number) => void;\n"
        "export abstract class Store<T> {\n  public get size(): number {\n    return 1;\n  }\n}\n"
        "const wrap = async (f: Fn): Promise<void> => { await f(); };\nexport enum Mode {\n  Fast,\n}",
        {"UserRow", "Handler", "Store", "size", "wrap", "Mode"},
        {"Promise"},
    ),
    "go": (
        "package retry\n\nfunc (r *Retrier) DoThing(ctx context.Context) error {\n\tattempts := 3\n}\n"
        "func Backoff(n int) int {\n}\ntype Retrier struct {\n}\nconst (\n\tMaxTries = 3\n\tMinWait\n)\n"
        'var ErrStop = errors.New("x")',
        {"DoThing", "Backoff", "Retrier", "MaxTries", "MinWait", "ErrStop"},
        {"attempts", "errors"},
    ),
    "rust": (
        "pub(crate) async fn retry_it<'a>(x: &'a str, limit: usize) -> Result<()> {\n    let tries = 1;\n}\n"
        "#[derive(Debug)]\npub struct Backoff { n: u32 }\nimpl Backoff {}\nconst MAX_TRIES: u32 = 5;\n"
        "macro_rules! wait_for {\n}",
        {"retry_it", "Backoff", "MAX_TRIES", "wait_for"},
        {"tries"},
    ),
    "java": (
        "public final class RetryService implements Runnable {\n"
        "    private final Map<String, Integer> attemptsByName = new HashMap<>();\n"
        "    public static int countAttempts(String name) {\n        return 1;\n    }\n"
        "    void helperThing(int a) {\n    }\n}",
        {"RetryService", "attemptsByName", "countAttempts", "helperThing"},
        {"Runnable", "HashMap"},
    ),
    "c#": (
        "namespace Acme.Net;\npublic record RetryOptions(int Max);\npublic class Client {\n"
        "    public int MaxTries { get; set; }\n    protected async Task<int> SendAsync(Request request) {\n"
        "        if (x) {\n        }\n    }\n}",
        {"RetryOptions", "Client", "MaxTries", "SendAsync"},
        {"Request"},
    ),
    "shell": (
        "#!/bin/bash\nset -e\nexport RETRY_LIMIT=3\nretry_it() {\n  echo hi\n}\nfunction do_backup {\n}\n",
        {"RETRY_LIMIT", "retry_it", "do_backup"},
        set(),
    ),
    "sql": (
        "CREATE TABLE IF NOT EXISTS public.users (\n  id INTEGER PRIMARY KEY,\n  email_address TEXT NOT NULL\n);\n"
        "CREATE INDEX idx_users_email ON users(email_address);\n"
        "CREATE OR REPLACE VIEW active_users AS SELECT * FROM users;",
        {"users", "email_address", "idx_users_email", "active_users"},
        set(),
    ),
    "polish names": (
        "def zlicz_próby(żądanie):\n    return żądanie\n\nclass ŁączeSieci:\n    pass",
        {"zlicz_próby", "ŁączeSieci"},
        {"żądanie"},
    ),
    "russian names": ("def посчитать_попытки(имя):\n    return имя\n", {"посчитать_попытки"}, {"имя"}),
}


@pytest.mark.parametrize("language", DEFINITIONS)
def test_definitions_and_mentions_are_found_in(language):
    code, defined, mentioned = DEFINITIONS[language]
    found = extract(code)
    assert defined <= found.defs
    assert mentioned <= found.mentions
    assert not mentioned & found.defs, "a name that is only used is not defined"


def test_local_variables_are_not_definitions():
    assert extract("def outer():\n    inner_value = 1\n    return inner_value\n").defs == {"outer"}


def test_an_indented_snippet_is_read_from_its_own_margin():
    found = extract("    def method_one(self):\n        return 1\n    LIMIT_ONE = 3\n")
    assert found.defs == {"method_one", "LIMIT_ONE"}


def test_prose_words_are_never_names():
    assert extract("the result of the name lookup, and the class size matters").mentions == frozenset()
    assert extract("Wynik wyszukania nazwy jest zły.").mentions == frozenset()
    assert extract("Результат поиска имени неверен.").mentions == frozenset()


@pytest.mark.parametrize(
    ("prose", "names"),
    [
        ("see retry_it in the module", {"retry_it"}),
        ("countAttempts is slow", {"countAttempts"}),
        ("HTTPClient hangs", {"HTTPClient"}),
        ("call `retry` twice", {"retry"}),
        ("use attempts.count_attempts here", {"attempts", "count_attempts"}),
        ("Retry::limit and flush() were changed", {"Retry", "limit", "flush"}),
        ("funkcja zlicz_próby zwraca zero", {"zlicz_próby"}),
        ("`Повтор` живёт в посчитать_попытки()", {"Повтор", "посчитать_попытки"}),
    ],
)
def test_names_in_prose_look_like_code(prose, names):
    assert extract(prose).mentions == names


@pytest.mark.parametrize(
    "prose",
    [
        "it lives in retry.py:42",
        "see https://example.com/foo.bar",
        "write to a.b@example.com",
        "file(s) were changed",
        "e.g. this and i.e. that",
    ],
)
def test_paths_addresses_and_plurals_are_no_names(prose):
    assert extract(prose).mentions == frozenset()


def test_fenced_code_is_code_and_what_is_around_it_is_prose():
    found = extract("The name is here:\n```js\nfunction fooBar() {\n  return helper;\n}\n```\nThe result is good.")
    assert found.defs == {"fooBar"}
    assert found.mentions == {"fooBar", "helper"}


def test_comments_and_strings_in_code_are_read_as_prose():
    found = extract(
        'def f_one():\n    """Uses result and other_thing."""\n    # see retry_two\n    return "literal name"\n'
    )
    assert {"other_thing", "retry_two"} <= found.mentions
    assert not {"result", "literal", "name"} & found.mentions


def test_a_sentence_among_code_is_still_prose():
    found = extract(
        "replaced the loop in retry_it:\n    for attempt in range(limit):\n        wait = backoff(attempt)\n"
    )
    assert {"retry_it", "attempt", "backoff"} <= found.mentions
    assert not {"the", "replaced", "loop"} & found.mentions


def test_a_patch_defines_what_it_adds_and_mentions_what_it_removes():
    found = extract(
        "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n-def old_name():\n+def new_name():\n     return helper_fn()\n"
    )
    assert "new_name" in found.defs
    assert "old_name" not in found.defs
    assert {"old_name", "helper_fn"} <= found.mentions


def test_a_log_mentions_only_what_looks_like_code():
    found = extract("2026-11-30 12:00:00 ERROR worker=3 name=foo result=bad retry_it failed in HttpClient")
    assert found.defs == frozenset()
    assert found.mentions == {"retry_it", "HttpClient"}


def test_the_name_of_the_file_tells_the_language():
    assert "total" in extract("total = 1 # not_here", "src/a.py").mentions
    assert extract("-- a comment_here\nSELECT one FROM some_table", "q.sql").mentions >= {"some_table", "comment_here"}


def test_spellings_of_one_name_share_a_key():
    assert len({key("retryIt"), key("retry_it"), key("RETRY_IT"), key("RetryIt")}) == 1
    assert key("zlicz_próby") == key("zlicz_proby")


def test_a_question_has_strong_and_weak_names():
    found = asked("что делает count_attempts, и где retry?")
    assert found.strong == {"countattempts"}
    assert "retry" in found.weak
    assert "где" not in found.weak


@pytest.mark.parametrize(
    "hostile",
    [
        "public " * 34,
        "public static a " * 15 + "(",
        "a.b" * 80,
        "create table a(" * 16,
        "'a" * 120,
        "`" * 5001,
        "/*" * 900,
        "type " * 48,
        "\x00",
        "\ud800",
        "",
        "\n" * 5000,
        "x = " * 60,
        "((((" * 60,
    ],
)
def test_hostile_text_gives_names_or_none_but_never_hangs_or_raises(hostile):
    found = extract((hostile + "\n") * 100)
    assert found.defs <= found.mentions


def test_very_long_text_is_read_at_its_head_and_tail():
    text = "def first_one():\n    pass\n" + "filler line\n" * 60_000 + "def last_one():\n    pass\n"
    assert {"first_one", "last_one"} <= extract(text, "a.py").defs
