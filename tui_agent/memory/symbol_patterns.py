"""The regular expressions and word lists behind :mod:`tui_agent.memory.symbols`."""

from __future__ import annotations

import re

NAME_LENGTH = 3
"""Shorter names say nothing."""

_N = r"[^\W\d][\w$]*"  # an identifier in any script

ANY_NAME = re.compile(_N)


def _listed(words: str) -> list[str]:
    return words.split()


CODE_SUFFIXES: dict[str, str] = {
    **dict.fromkeys(
        _listed(
            "py pyi python sh bash zsh shell console rb ruby toml yaml yml make makefile dockerfile r jl ps1 conf cfg"
        ),
        "hash",
    ),
    **dict.fromkeys(
        _listed(
            "js jsx ts tsx mjs cjs javascript typescript go golang java kt kotlin cs csharp c h cc cpp hpp cxx swift "
            "scala dart php css scss proto m mm zig groovy vue svelte"
        ),
        "c",
    ),
    **dict.fromkeys(("rs", "rust"), "rust"),
    **dict.fromkeys(_listed("sql psql mysql sqlite plsql ddl"), "sql"),
}
"""File suffixes and fence words by the family their comments and strings belong to."""

COMMENTS = {
    "hash": r"(?:^|(?<=\s))\#(?!!)[^\n]*",
    "c": r"//[^\n]*|/\*.*?(?:\*/|\Z)",
    "rust": r"//[^\n]*|/\*.*?(?:\*/|\Z)",
    "sql": r"--[^\n]*|/\*.*?(?:\*/|\Z)",
    "": r"(?:^|(?<=\s))(?:\#|//)(?=\s)[^\n]*|/\*.*?\*/",
}
_ONE_LINE = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_TRIPLE = r"\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)"
STRINGS = {
    "hash": rf"{_TRIPLE}|{_ONE_LINE}",
    "c": rf"`[^`]*`|{_ONE_LINE}",
    "rust": r"\"(?:\\.|[^\"\\])*\"|'(?:\\[^'\n]+|[^'\\\n])'",  # a lone quote is a lifetime there
    "sql": r"'(?:''|[^'])*'",  # double quotes and backticks hold names
    "": rf"{_TRIPLE}|{_ONE_LINE}|`[^`\n]*`",
}

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`]*)$")
INLINE_CODE = re.compile(r"`([^`\n]{1,200})`")
DIFF = re.compile(r"^@@ [-+0-9, ]+ @@|^--- \S.*\n\+\+\+ \S", re.M)
FILE_NAME = re.compile(
    r"(?:[\w.\-]+[/\\])*[\w.\-]+\.(?:pyi?|[cm]?[jt]sx?|go|rs|java|kt|cs|cpp|cc?|h|hpp|rb|php|sh|sql|md|txt|rst|json|ya?ml|"
    r"toml|ini|cfg|conf|lock|log|html?|s?css|xml|csv|ipynb|env|db|com|org|net|io|dev|pl|ru)",
    re.I,
)
PROSE_NAME = re.compile(
    rf"(?<![\w@/.\-])(?![a-z]+(?![\w.:\-\#(@/]))(?<!://){_N}(?:(?:\.|::|->|\#){_N})*(?:\(\))?(?![\w@/])",
)
"""Candidates in prose; only those that look like code are taken. Plain lower-case words are passed over at once."""
LOGFMT = re.compile(r"(?:^|\s)[\w.]+=\S+\s+[\w.]+=\S")

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|abstract|final|sealed|async|unsafe|const|"
    r"extern(?:[ \t]+\"[^\"\n]*\")?|virtual|override|readonly|partial|open|data|inline|pub(?:\([^)\n]*\))?|native|"
    r"synchronized|required|volatile|transient)[ \t]+)"
)
KEYWORDED = re.compile(
    rf"^[ \t]*{_MODIFIERS}{{0,6}}"
    r"(?:def|class|function\b[ \t]*\*?|func|fn|fun|interface|trait|struct|enum(?:[ \t]+(?:class|struct))?|"
    r"record(?:[ \t]+(?:class|struct))?|type|namespace|module|mod|union|macro_rules!|protocol|"
    r"delegate[ \t]+[\w<>\[\],.?]+)"
    rf"(?:[ \t]*\([^)\n]*\))?[ \t]+((?:{_N}(?:\.|::))*{_N})[?!]?"
    r"(?=[ \t]*(?:[(<:{=;\[|]|$|extends\b|implements\b|where\b|struct\b|interface\b|func\b|is\b|for\b|map\b|chan\b|\*|"
    rf"{_N}[ \t]*$))",
    re.M,
)
"""``def f(``, ``export async function f(``, ``func (r *T) f(``, ``pub struct S {``, ``type T struct``, …"""

TYPED = re.compile(
    rf"^[ \t]*(?!const\b){_MODIFIERS}{{1,6}}(?:{_N}[\w<>\[\],.?*& ]{{0,80}}?[\w>\]?*&][ \t]+)??({_N})"
    r"[ \t]*(?:<[^<>\n]*>)?[ \t]*"
    r"(?:\(|=(?!=)|;|\{[ \t]*(?:get|set|init)\b|=>)"
    rf"|^[ \t]*(?!(?:return|else|new|throw|await|in|case|if|while|for)\b){_N}[\w<>\[\],.?*&]*[ \t]+[*&]?({_N})"
    r"\([^;{}\n]*\)"
    r"[ \t]*(?:const[ \t]*)?(?:throws[^{\n]*)?\{[ \t]*$",
    re.M,
)
"""Members and functions of Java, C#, C and C++: ``public static int f(``, ``private final T x;``, ``int f(int a) {``"""

MEMBERS = re.compile(
    rf"^[ \t]+(?:(?:async|static|get|set)[ \t]+|\*[ \t]*)*\#?({_N})[ \t]*(?:<[^<>\n]*>)?\([^()\n]*\)[ \t]*"
    r"(?::[^{\n]+)?\{[ \t]*$"
    rf"|^[ \t]*(?:export[ \t]+)?(?:(?:const|let|var)[ \t]+)?({_N})[ \t]*[:=](?:[^=\n(]*=)?[ \t]*(?:async[ \t]*)?"
    rf"(?:function\b|\([^()\n]*\)[ \t]*(?::[^=\n]+)?=>|{_N}[ \t]*=>)",
    re.M,
)
"""Methods and function values of JavaScript and TypeScript."""

SHELL_OR_VARIABLE = re.compile(
    rf"^[ \t]*({_N})[ \t]*\(\)[ \t]*(?:\{{|$)"
    rf"|^[ \t]*(?:export|alias|readonly|declare[ \t]+-\w+)[ \t]+({_N})=",
    re.M,
)
TOP_LEVEL = re.compile(
    rf"^([ \t]*)(?:(?:export|pub(?:\([^)\n]*\))?|declare)[ \t]+)?"
    rf"(?:(?:const|let|var|val|static)[ \t]+(?:mut[ \t]+)?)?({_N})"
    r"(?:[ \t]*:[^=\n:][^=\n]*|[ \t]+(?!in\b|is\b|not\b|and\b|or\b)[\w.*\[\]]+)?[ \t]*:?=(?![=~>])",
    re.M,
)
"""Variables and constants; they count on the outermost level only, a local name cannot be meant elsewhere."""
C_ASSIGN = re.compile(rf"^[ \t]*(?:module\.)?(?:exports|{_N}\.prototype)\.({_N})[ \t]*=(?!=)", re.M)
GO_BLOCK = re.compile(r"^(?:const|var)[ \t]*\([ \t]*\n(.*?)^\)", re.M | re.S)
GO_BLOCK_NAME = re.compile(rf"^[ \t]+({_N})(?:[ \t]+[\w.*\[\]]+)?[ \t]*(?:=|$)", re.M)

_SQL_NAME = r"(?:[\"`\[]?\w+[\"`\]]?\.)?[\"`\[]?\w+[\"`\]]?"
SQL_DEFINITION = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|unique|materialized|virtual|recursive|unlogged|external)\s+){0,4}"
    r"(?:table|view|index|function|procedure|trigger|type|schema|sequence|domain)\s+(?:concurrently\s+)?"
    rf"(?:if\s+not\s+exists\s+)?({_SQL_NAME})(?=\s*(?:\(|as\b|on\b|using\b|before\b|after\b|instead\b|is\b|;|$))"
    rf"|\b(?:with(?:\s+recursive)?|\),)\s+({_SQL_NAME})\s+as\s*\("
    rf"|\badd\s+column\s+(?:if\s+not\s+exists\s+)?({_SQL_NAME})",
    re.I,
)
SQL_TABLE_BODY = re.compile(
    r"\bcreate\s+(?:\w+\s+){0,4}?table\b[^(;]{0,120}\((.{0,4000}?)\)\s*(?:;|\Z|without\b|engine\b)", re.I | re.S
)
SQL_COLUMN = re.compile(
    r"(?:^|,|\A)\s*[\"`\[]?(\w+)[\"`\]]?\s+(?:int|integer|bigint|smallint|tinyint|serial|bigserial|text|varchar|char|"
    r"character|real|double|float|numeric|decimal|boolean|bool|date|datetime|time|timestamp|timestamptz|uuid|json|jsonb|"
    r"blob|bytea)\b",
    re.I | re.M,
)

CODE_LINE = re.compile(
    r"\s*(?:"
    r"(?:[}\])]+[;,)]*|\{|\(|\[)\s*$"
    rf"|{_MODIFIERS}{{0,6}}(?:def|class|function\*?|func|fn|fun|interface|trait|struct|enum|record|type|namespace|mod|impl|"
    rf"macro_rules!)\b[^.\n]*[\w$]\s*(?:[(<:{{=;]|\b(?:struct|interface|extends|implements)\b|$)"
    r"|(?:async\s+)?(?:if|elif|else|for|while|try|except|catch|finally|switch|case|with|match|do|loop)\b.*(?:[:{]|\bthen|\bdo)\s*$"
    r"|(?:import|from|using|package|use|require|include|\#include|return|raise|throw|yield|await|assert|del|pass|break|"
    r"continue|end|fi|done|esac|export|const|let|var|val|pub|public|private|protected|static|final)\b"
    r"(?:[^.?!\n]*|.*[;({=]\s*\S*.*)$"
    rf"|[\w.$\[\]\"'()*&]+(?:\s*:\s*[\w\[\], .|<>\"']+?|\s+[\w.*\[\]<>]+)?\s*(?:[-+*/|&%]|:|<<|>>)?=(?![=~])\s*\S"
    rf"|(?:await\s+|\$\s*)?{_N}(?:(?:\.|::|->){_N})*\((?:.*\)[;,:{{]?|[^)]*)\s*$"
    r"|@[\w.]+(?:\(.*\)?)?\s*$|\$\s+\S|>>>\s|\.\.\.\s|\#!/"
    r"|.*[;{]\s*$|.*=>\s*\{?\s*$"
    r"|(?i:create|alter|insert\s+into|select|delete\s+from|update|drop)\s+\S+.*(?:[(,;]|\b(?i:from|set|values|as|add)\b.*)\s*$"
    r")"
)
"""A line that can hardly be prose."""

PROSE_LINE = re.compile(
    r"\s*(?:[#*>-]+\s+)?[^\W\d_]+(?:['’-][^\W\d_]+)?[,;]?(?:\s+[\w'’`().\-]+[,;]?){3,60}[.:!?…]?\s*$"
)
"""A line of at least four words with nothing between them: a sentence, also among code."""

NOT_METHODS = frozenset(
    _listed(
        "if for while switch catch return function else do try with super constructor sizeof typeof foreach lock using "
        "when until unless fixed checked new throw await yield"
    )
)

KEYWORDS = frozenset(
    _listed(
        """
        False None True abstract and as assert async await break case catch chan class const continue crate
        debugger declare def default defer del delete do done elif else elsif end ensure enum esac except exec
        export extends extern fallthrough fi final finally fn for foreach from func function fun get global
        goto go if impl implements import in include instanceof interface internal is lambda let local loop
        macro_rules match mod module mut namespace new nil nonlocal not null or out override package pass
        private protected pub public raise range readonly record ref require return rescue sealed select self
        Self set static struct super switch then this throw throws trait transient try type typeof undefined
        union unless unsafe until use using val var virtual void volatile when where while with yield true
        false int str float bool list dict tuple len print open zip isinstance repr format sorted reversed min
        max sum abs any all map filter object Exception ValueError TypeError KeyError RuntimeError
        StopIteration IndexError AttributeError string String number boolean Boolean Integer Object Array char
        byte long short double unsigned signed usize isize u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Vec Option
        Result Some Ok Err Box error err fmt log args kwargs cls echo console document window module exports
        require println printf sprintf main std vec
        """
    )
)
"""Words of the languages themselves, and names so common that they tie nothing together."""

SQL_KEYWORDS = frozenset(
    _listed(
        """
        add after all alter and any asc before begin between bigint boolean cascade case cast check column
        commit conflict constraint create cross current database date decimal default delete desc distinct
        drop else end except exists false for foreign from full function group having ilike index inner insert
        instead integer intersect into join key left like limit materialized not null numeric offset on order
        outer over partition primary procedure real recursive references replace returning returns right
        rollback row rows schema select sequence serial set table temp temporary text then timestamp trigger
        true type union unique update using uuid values varchar view virtual when where window with without
        """
    )
)
"""Words of SQL, any case; they count as keywords in SQL only, where ``limit`` and ``index`` are no names."""
