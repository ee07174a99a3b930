"""The words embedding models expect before a query or a document; a missing or wrong one costs much recall.

Sources: the model cards as mteb 2.26 has them. Servers never add any of these. Trailing spaces matter.
"""

from __future__ import annotations

import re

_PASSAGES = "Represent this sentence for searching relevant passages: "
_CHINESE = "为这个句子生成表示以用于检索相关文章："
_TASK = "Given a web search query, retrieve relevant passages that answer the query"

# The first pattern that matches the model's family decides. Order matters where one name begins another.
_TABLE: tuple[tuple[str, str, str], ...] = (
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
    (r"qwen3-embedding", f"Instruct: {_TASK}\nQuery:", ""),
    (r"mxbai-embed-large", _PASSAGES, ""),
    (r"snowflake-arctic-embed(2|.*-v2)", "query: ", ""),
    (r"snowflake-arctic-embed", _PASSAGES, ""),
    (r"bge-m3", "", ""),
    (r"bge-.*-zh", _CHINESE, ""),
    (r"bge-(.*-en|small$|base$|large$)", _PASSAGES, ""),
    (r"(.*-)?e5-.*instruct", "", ""),  # has a format of its own that the table of the cards does not settle
    (r"(.*-)?e5(-|$)", "query: ", "passage: "),
    (r"gte-qwen.*instruct", f"Instruct: {_TASK}\nQuery: ", ""),
)


def format_prefixes(model: str) -> tuple[str, str]:
    """``(query prefix, document prefix)`` of a model, by its family: name without name space and tag.

    Unknown models get none, since a wrong prefix is worse than none.
    """
    name = family(model)
    for pattern, query, document in _TABLE:
        if re.match(pattern, name):
            return query, document
    return "", ""


def family(model: str) -> str:
    """``hf.co/nomic-ai/nomic-embed-text-v1.5-GGUF:Q8_0`` → ``nomic-embed-text-v1.5-gguf``."""
    last = model.rsplit("/", 1)[-1]
    return last.split(":", 1)[0].strip().lower().replace("_", "-")
