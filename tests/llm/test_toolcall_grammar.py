"""Our own calls of every family and our own texts that are no calls, beside the shared cases.

A row of ``CALLS`` is (family, answer, calls, visible text); a row of ``NOT_CALLS`` is (kind, answer).
"""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.llm.toolcalls import HoldBack, rescue


def _tool(name: str, required: tuple[str, ...], **types: Any) -> dict[str, Any]:
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "…", "parameters": schema}}


TOOLS = [
    _tool("edit_file", ("path", "old_string", "new_string"), path="string", old_string="string", new_string="string"),
    _tool("remember", ("fact",), fact="string", category="string", importance="integer"),
    _tool("recall", ("query",), query="string"),
    _tool("search_history", ("query",), query="string", limit="integer", role="string"),
    _tool("read_file", ("path",), path="string", start_line="integer", end_line="integer"),
    _tool("search_files", ("pattern",), pattern="string", glob="string"),
    _tool("write_todos", ("todos",), todos={"type": "array", "items": {"type": "string"}}),
    _tool("list_notes", (), archived="boolean"),
    _tool("set_rate", ("rate",), rate="number", options={"type": "object"}),
]

Call = tuple[str, dict[str, Any]]


def _r(query: str) -> Call:
    return ("recall", {"query": query})


CALLS: list[tuple[str, str, list[Call], str]] = [
    # F1: fenced JSON
    ("F1", '```JSON\n{"name": "recall", "arguments": {"query": "a"}}\n```\n', [_r("a")], ""),
    ("F1", 'Sure.\n\n````json\n{"name": "recall", "arguments": {"query": "a"}}\n````', [_r("a")], "Sure."),
    ("F1", '~~~json\n{"name": "recall", "arguments": {"query": "a"}}\n~~~', [_r("a")], ""),
    ("F1", 'One moment.```json\n{"name": "recall", "arguments": {"query": "a"}}\n```', [_r("a")], "One moment."),
    ("F1", '  ```json\n  {"name": "recall",\n   "arguments": {"query": "a"}}\n  ```', [_r("a")], ""),
    ("F1", '```json\n{"name": "recall", "arguments": {"query": "a"}}```', [_r("a")], ""),
    ("F1", '```json {"name": "recall", "arguments": {"query": "a"}} ```', [_r("a")], ""),
    (
        "F1",
        '```json\n{"name": "recall", "arguments": {"query": "a"}}\n{"name": "recall", "arguments": {"query": "b"}}\n```',
        [_r("a"), _r("b")],
        "",
    ),
    ("F1", '```json\r\n{"name": "recall", "arguments": {"query": "a"}}\r\n```\r\n', [_r("a")], ""),
    ("F1", 'Ok.\n```json\n{"name": "recall", "arguments": {"query": "a"}', [_r("a")], "Ok."),
    ("F1", '```\n<tool_call>\n{"name": "recall", "arguments": {"query": "a"}}\n</tool_call>\n```', [_r("a")], ""),
    ("F1", '```json\n{"name": "recall", "arguments": {"query": "a"}}\n```\nDone, I searched it.', [_r("a")], ""),
    # F2: bare object
    ("F2", '{ "name" : "recall" ,\n "arguments" : { "query" : "żółć" } }', [_r("żółć")], ""),
    ("F2", '\n\n{"name":"list_notes","arguments":{}}\n', [("list_notes", {})], ""),
    ("F2", '{"name":"list_notes","arguments":{"archived":"true"}}', [("list_notes", {"archived": True})], ""),
    ("F2", '{"id": "call_1", "name": "recall", "arguments": {"query": "a"}}', [_r("a")], ""),
    ("F2", '{"name": "functions.recall <|constrain|>json", "arguments": {"query": "a"}}', [_r("a")], ""),
    ("F2", '{"name": "recall", "arguments": {"query": "a\\tb \\ud83d\\ude00"}}', [_r("a\tb 😀")], ""),
    ("F2", '{"name": "recall", "arguments": {"query": "a\tb"}}', [_r("a\tb")], ""),
    ("F2", '{"function": {"arguments": {"query": "a"}, "name": "recall"}}', [_r("a")], ""),
    ("F2", '{"function": "recall", "args": {"query": "a"}}', [_r("a")], ""),
    ("F2", '{"name": "remember", "arguments": {"fact": "a", "category": null}}', [("remember", {"fact": "a"})], ""),
    ("F2", '{"name": "recall", "arguments": {"query": "a"}}}', [_r("a")], ""),
    # F3: parameters
    ("F3", '{"parameters": {"query": "a"}, "name": "recall"}', [_r("a")], ""),
    ("F3", '{"type": "function", "function": {"name": "recall", "parameters": {"query": "a"}}}', [_r("a")], ""),
    (
        "F3",
        'Czytam plik.\n{"name": "read_file", "parameters": {"path": "a.py", "start_line": "007", "end_line": null}}',
        [("read_file", {"path": "a.py", "start_line": 7})],
        "Czytam plik.",
    ),
    # F4: array
    ("F4", '[\n{"name":"recall","arguments":{"query":"a"}}\n,\n{"name":"recall","args":{"query":"b"}}\n]', [_r("a"), _r("b")], ""),
    ("F4", 'Two things.\n\n[{"name":"recall","arguments":{"query":"a"}}]\n\nDone', [_r("a")], "Two things."),
    ("F4", '[{"name":"recall","arguments":{"query":"a"}}', [_r("a")], ""),
    ("F4", '[{"name":"recall","arguments":{"query":"a"}]', [_r("a")], ""),
    ("F4", '[{"name":"recall","arguments":{"query":"a"}}{"name":"recall","arguments":{"query":"b"}}]', [_r("a"), _r("b")], ""),
    ("F4", '[{"name":"nope","arguments":{}},{"name":"recall","arguments":{"query":"b"}}]', [_r("b")], ""),
    ("F4", "[{'name': 'recall', 'arguments': {'query': 'it\\'s'}}]", [_r("it's")], ""),
    # F5: wrapper
    ("F5", '{"tool_calls":[{"type":"function","function":{"name":"recall","arguments":{"query":"a"}}}],"content":""}', [_r("a")], ""),
    ("F5", '{"toolCalls": [{"name": "recall", "args": {"query": "a"}}]}', [_r("a")], ""),
    ("F5", '```json\n{"tool_calls": [{"name": "recall", "arguments": {"query": "a"}}]}\n```', [_r("a")], ""),
    ("F5", '{"tool_calls": [{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], ""),
    ("F5", '{"tool_call": {"name": "recall", "arguments": {"query": "a"}}}', [_r("a")], ""),
    ("F5", '{"content": null, "tool_calls": [{"name": "recall", "arguments": {"query": "a"}}]}', [_r("a")], ""),
    # F6: several objects
    ("F6", '{"name":"recall","arguments":{"query":"a"}} {"name":"recall","arguments":{"query":"b"}}', [_r("a"), _r("b")], ""),
    ("F6", '{"name":"recall","arguments":{"query":"a"}},\n\n{"name":"recall","arguments":{"query":"b"}},', [_r("a"), _r("b")], ""),
    ("F6", '{"name":"recall","arguments":{"query":"a"}};{"name":"recall","arguments":{"query":"b"}};', [_r("a"), _r("b")], ""),
    ("F6", '{"name":"recall","arguments":{"query":"a"}}\n{"name":"recall","arguments":{"query":"b', [_r("a")], ""),
    ("F6", '{"name":"recall","arguments":{"query":"a"}}\n{"name":"recall","arguments":{}}\n{"name":"recall","arguments":{"query":"c"}}', [_r("a"), _r("c")], ""),
    ("F6", '{"name":"recall","arguments":{"query":"a"}}\nand\n{"name":"recall","arguments":{"query":"b"}}', [_r("a")], ""),
    # F7: tool_call tags
    ("F7", '<tool_call>\n{"name": "recall", "arguments": {"query": "a"}\n</tool_call>', [_r("a")], ""),
    ("F7", 'Hm.\n<tool_call>{"name": "recall", "arguments": {"query": "</tool_call>"}}</tool_call>', [_r("</tool_call>")], "Hm."),
    ("F7", '<tool_call>\n{"name": "recall", "arguments": {"query": "a"}}\n{"name": "recall", "arguments": {"query": "b"}}\n</tool_call>', [_r("a"), _r("b")], ""),
    ("F7", '<tool_call>\n<tool_call>\n{"name": "recall", "arguments": {"query": "a"}}\n</tool_call>\n</tool_call>', [_r("a")], ""),
    ("F7", '<tool_call>{"name": "recall", "arguments": {"query": "a"}}<tool_call>', [_r("a")], ""),
    ("F7", '<tool_call>\n```json\n{"name": "recall", "arguments": {"query": "a"}}\n```\n</tool_call>', [_r("a")], ""),
    ("F7", '<tool_call>[{"name": "recall", "arguments": {"query": "a"}}]</tool_call>', [_r("a")], ""),
    ("F7", '<tool_call>\n{"arguments": {"query": "a"}, "name": "recall"}\n</tool_call>\n<|im_end|>', [_r("a")], ""),
    ("F7", '<tool_calls>\n<tool_call>{"name": "recall", "args": {"query": "a"}}</tool_call>\n<tool_call>{"name": "recall", "args": {"query": "b"}}</tool_call>\n</tool_calls>', [_r("a"), _r("b")], ""),
    # F8: other tags
    ("F8", '<tools>\n{"name": "recall", "arguments": {"query": "a"}}\n{"name": "recall", "arguments": {"query": "b"}}\n</tools>', [_r("a"), _r("b")], ""),
    ("F8", '<function>{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], ""),
    ("F8", '<function-call>\n{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], ""),
    ("F8", '<function_call>{"name": "recall", "arguments": {"query": "a"}}</function_cal', [_r("a")], ""),
    ("F8", '<tools>{"name": "recall", "arguments": {"query": "a"}}</tool>', [_r("a")], ""),
    ("F8", '<tools>[{"name": "recall", "arguments": {"query": "a"}},]</tools', [_r("a")], ""),
    # F9: XML parameters
    ("F9", "<function=recall>\n<parameter=query>\na\n</parameter>\n</function>\n</tool_call>\nDone.", [_r("a")], ""),
    ("F9", "Ok.\n\n<tool_call>\n<function=recall><parameter=query>a</parameter></function>", [_r("a")], "Ok."),
    ("F9", "<function=read_file><parameter=path>a b.py</parameter><parameter=end_line>\n 9 \n</parameter></function>", [("read_file", {"path": "a b.py", "end_line": 9})], ""),
    ("F9", "<function=remember>\n<parameter=fact>\n\n  two\n\n</parameter>\n</function>", [("remember", {"fact": "\n  two\n"})], ""),
    ("F9", "<function=recall>\n<parameter=query>use <b>x</b> & </p></parameter>\n</function>", [_r("use <b>x</b> & </p>")], ""),
    ("F9", "<function=recall>\n<parameter=query>say </parameter> and go</parameter>\n</function>", [_r("say </parameter> and go")], ""),
    ("F9", "<function=remember><parameter=fact>Format: <function=recall><parameter=query>x</parameter></function></parameter></function>", [("remember", {"fact": "Format: <function=recall><parameter=query>x</parameter></function>"})], ""),
    ("F9", '<function=recall>{"query": "a"}</function>', [_r("a")], ""),
    ("F9", '<function name="recall"><parameter name="query">a</parameter></function>', [_r("a")], ""),
    ("F9", "<function=list_notes>\n</function>", [("list_notes", {})], ""),
    ("F9", "<function=list_notes><parameter=archived>False</parameter></function>", [("list_notes", {"archived": False})], ""),
    ("F9", "<function=remember><parameter=fact>a</parameter><parameter=importance></parameter></function>", [("remember", {"fact": "a"})], ""),
    # F10: python tag
    ("F10", "<|python_tag|>search_history.call(query=\"it's\", limit=3, role=None)<|eom_id|>", [("search_history", {"query": "it's", "limit": 3})], ""),
    ("F10", '<|python_tag|>{"type": "function", "name": "recall", "parameters": {"query": "a"}}', [_r("a")], ""),
    ("F10", 'I look.\n<|python_tag|>{"name": "recall", "parameters": {"query": "a"}}; {"name": "recall", "parameters": {"query": "b"}}<|eot_id|>', [_r("a"), _r("b")], "I look."),
    ("F10", '<|python_tag|>recall(query="a")', [_r("a")], ""),
    ("F10", '<|python_tag|>write_todos.call(todos=["a, b", "c)"])', [("write_todos", {"todos": ["a, b", "c)"]})], ""),
    # F11: Mistral
    ("F11", '[TOOL_CALLS] [{"name": "recall", "arguments": {"query": "a"}, "id": "abc123def"}]</s>', [_r("a")], ""),
    ("F11", 'Let me see.[TOOL_CALLS]recall[CALL_ID]x1y2z3[ARGS]{"query": "a"}', [_r("a")], "Let me see."),
    ("F11", '[TOOL_CALLS]recall{"query": "a"}\n[TOOL_CALLS]list_notes{}', [_r("a"), ("list_notes", {})], ""),
    ("F11", '[TOOL_CALLS]recall[ARGS]{"query": "[TOOL_CALLS]x{}"}', [_r("[TOOL_CALLS]x{}")], ""),
    ("F11", '[TOOL_CALLS]{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], ""),
    ("F11", 'recall[ARGS]{"query": "a"}', [_r("a")], ""),
    ("F11", '[TOOL_CALLS] recall [ARGS] {"query": "a"} [/TOOL_CALLS]\nok', [_r("a")], ""),
    # F12: DeepSeek
    ("F12", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>recall<｜tool▁sep｜>{"query": "a"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [_r("a")], ""),
    ("F12", 'Ok<｜tool▁call▁begin｜>function<｜tool▁sep｜>recall\n```json\n{"query": "a"}\n```<｜tool▁call▁end｜>', [_r("a")], "Ok"),
    ("F12", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>nope\n```json\n{}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>recall\n```json\n{"query": "<｜tool▁call▁end｜>"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [_r("<｜tool▁call▁end｜>")], ""),
    ("F12", '<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>recall\n```json\n{"query": "a"}\n```<|tool_call_end|><|tool_calls_end|>', [_r("a")], ""),
    # F13: Python calls
    ("F13", '```tool_code\n# look it up\nresult = recall(query="a")\nprint(result)\n```', [_r("a")], ""),
    ("F13", "```tool_code\nrecall(query='a')\nsearch_history(query='b', limit=2)\n```", [_r("a"), ("search_history", {"query": "b", "limit": 2})], ""),
    ("F13", '```python\nprint(recall(query="a"))\n```\nLet me know.', [_r("a")], ""),
    ("F13", 'Szukam.\nrecall(query="a (b)")', [_r("a (b)")], "Szukam."),
    ("F13", "remember(\n    fact='a',\n    importance=5,\n)", [("remember", {"fact": "a", "importance": 5})], ""),
    ("F13", 'edit_file(path="a.md", old_string="", new_string="""# A\n"quoted"\n""")', [("edit_file", {"path": "a.md", "old_string": "", "new_string": '# A\n"quoted"\n'})], ""),
    ("F13", 'edit_file(path="a.md", old_string="", new_string="line 1\nline 2")', [("edit_file", {"path": "a.md", "old_string": "", "new_string": "line 1\nline 2"})], ""),
    ("F13", '<tool_code>\nprint(recall(query="a"))\n</tool_code>', [_r("a")], ""),
    ("F13", 'tool_code\nprint(recall(query="a"))', [_r("a")], ""),
    ("F13", 'Let me look: recall(query="a")', [_r("a")], "Let me look:"),
    ("F13", 'recall(query="a"); list_notes(archived=True)', [_r("a"), ("list_notes", {"archived": True})], ""),
    ("F13", '```\nrecall(query="a")\n```', [_r("a")], ""),
    ("F13", "search_files(pattern=r'\\d+\\(', glob='*.py')", [("search_files", {"pattern": "\\d+\\(", "glob": "*.py"})], ""),
    # F14: tool tag
    ("F14", 'A.\n<tool>\n{"name": "recall", "parameters": {"query": "a"}}\n</tool>\nB.', [_r("a")], "A."),
    ("F14", "<tool>{'name': 'recall', 'parameters': {'query': 'a'}}</tool>", [_r("a")], ""),
    ("F14", '<tool>{"name": "recall", "parameters": {"query": "a"}}</tool><tool>{"name": "recall", "parameters": {"query": "b"}}</tool>', [_r("a"), _r("b")], ""),
    # F15: functiongemma
    ("F15", "<start_function_call>call:write_todos{todos:[<escape>a<escape>,<escape>b, c<escape>]}<end_function_call>", [("write_todos", {"todos": ["a", "b, c"]})], ""),
    ("F15", "Hm. <start_function_call>call:recall{query:<escape>{x}:\"y\"<escape>}", [_r('{x}:"y"')], "Hm."),
    ("F15", "<start_function_call>call:recall{query:<escape>a<escape>}<end_function_call><start_function_call>call:list_notes{archived:true}<end_function_call>", [_r("a"), ("list_notes", {"archived": True})], ""),
    ("F15", "<start_function_call>call:remember{fact:<escape>line 1\nline 2<escape>,importance:3}<end_function_call>", [("remember", {"fact": "line 1\nline 2", "importance": 3})], ""),
    # F16: gemma 4
    ("F16", '<|tool_call>call:set_rate{rate:0.5,options:{a:<|"|>b<|"|>}}<tool_call|>', [("set_rate", {"rate": 0.5, "options": {"a": "b"}})], ""),
    ("F16", 'call:search_history{query:port: 8443, tls,limit:3}', [("search_history", {"query": "port: 8443, tls", "limit": 3})], ""),
    ("F16", 'call:recall(query="a")', [_r("a")], ""),
    ("F16", "<|tool_call>call:recall(query:a b)<tool_call|>", [_r("a b")], ""),
    ("F16", "Planning now.call:write_todos{todos:[ship it, rest]}", [("write_todos", {"todos": ["ship it", "rest"]})], "Planning now."),
    ("F16", '<|channel>thought\nI should search.<|tool_call>call:recall{query:<|"|>a<|"|>}<tool_call|><channel|>', [_r("a")], ""),
    ("F16", '<|tool_call>call:recall{query:<|"|><|tool_call>call:list_notes{}<tool_call|><|"|>}<tool_call|>', [_r("<|tool_call>call:list_notes{}<tool_call|>")], ""),
    ("F16", 'call:recall:recall{"query":"a"}', [_r("a")], ""),
    ("F16", '<|tool_call>call:recall{query:<|"|>a<|"|>}<tool_call|><|tool_call>call:recall{query:<|"|>b<|"|>}<tool_call|>', [_r("a"), _r("b")], ""),
    # F17: GLM
    ("F17", "<tool_call>remember\n<arg_key>fact</arg_key>\n<arg_value>\na <b>\n</arg_value>\n</tool_call>", [("remember", {"fact": "a <b>"})], ""),
    ("F17", '<tool_call>write_todos<arg_key>todos</arg_key><arg_value>["a", "b"]</arg_value></tool_call>\n<tool_call>recall<arg_key>query</arg_key><arg_value>5</arg_value></tool_call>', [("write_todos", {"todos": ["a", "b"]}), _r("5")], ""),
    ("F17", "<tool_call>recall<arg_key>query</arg_key><arg_value>a</arg_value>", [_r("a")], ""),
    ("F17", "<tool_call>list_notes</tool_call>", [("list_notes", {})], ""),
    ("F17", "recall\n<arg_key>query</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", [_r("a")], ""),
    # F18: harmony
    ("F18", '<|start|>assistant<|channel|>analysis<|message|>Hm {"name": "recall", "arguments": {"query": "no"}}<|end|><|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>commentary to=functions.recall <|constrain|>json<|message|>{"query": "a"}<|call|>', [_r("a")], "Let me look."),
    ("F18", '<|channel|>commentary to=functions.recall<|constrain|>json<|message|>{"query": "a"}', [_r("a")], ""),
    ("F18", '<|start|>assistant<|channel|>commentary to=functions.recall <|constrain|>json<|message|>{"query":"a"}<|call|><|start|>assistant<|channel|>commentary to=functions.list_notes <|message|>{}<|call|>', [_r("a"), ("list_notes", {})], ""),
    ("F18", 'commentary to=functions.recall json{"query": "a"}', [_r("a")], ""),
    ("F18", 'assistantcommentary to=functions.recall <|message|>\n{"query": "a"}', [_r("a")], ""),
    ("F18", 'recall<|channel|>commentary <|constrain|>json<|message|>{"query": "a"}', [_r("a")], ""),
    ("F18", '{"name": "recall<|channel|>json", "arguments": "{\\"query\\": \\"a\\"}"}', [_r("a")], ""),
    # F19: lfm2, olmo3, cohere, glimmer
    ("F19", 'Ok.<|tool_call_start|>[recall(query="a"), search_history(query=\'b\', limit=2)]<|tool_call_end|> Wait.', [_r("a"), ("search_history", {"query": "b", "limit": 2})], "Ok."),
    ("F19", '[recall(query="a]")]', [_r("a]")], ""),
    ("F19", '<|tool_call_start|>[{"name": "recall", "arguments": {"query": "a"}}]<|tool_call_end|>', [_r("a")], ""),
    ("F19", "<function_calls>\nremember(fact=\"a\\nb\", importance=2)\n</function_calls>", [("remember", {"fact": "a\nb", "importance": 2})], ""),
    ("F19", '<|START_THINKING|>I need it.<|END_THINKING|><|START_ACTION|>[{"tool_call_id": "0", "tool_name": "recall", "parameters": {"query": "a"}},\n{"tool_call_id": "1", "tool_name": "list_notes", "parameters": {}}]<|END_ACTION|>', [_r("a"), ("list_notes", {})], ""),
    ("F19", '<atem:invoke name="recall">\n<atem:parameter name="query">a</atem:parameter>\n</atem:invoke>', [_r("a")], ""),
    ("F19", 'See.\n<function_calls>\n<invoke name="recall">\n<parameter name="query">a</parameter>\n</invoke>\n<invoke name="list_notes">\n</invoke>\n</function_calls>', [_r("a"), ("list_notes", {})], "See."),
    # F20: invented
    ("F20", '<do_it>\n{"name": "recall", "arguments": {"query": "a"}}\n</do_it>', [_r("a")], ""),
    ("F20", '<execute>[{"name": "recall", "arguments": {"query": "a"}}]</execute>', [_r("a")], ""),
    ("F20", "<antThinking>{\"name\": \"list_notes\", \"arguments\": {}}</antThinking>\nHere: <action>{\"name\": \"recall\", \"arguments\": {\"query\": \"a\"}}</action>", [_r("a")], "Here:"),
    ("F20", '{"tool_name": "recall", "args": {"query": "a"}}', [_r("a")], ""),
    ("F20", "<read_file>\n<path>src/a.py</path>\n<start_line>3</start_line>\n</read_file>", [("read_file", {"path": "src/a.py", "start_line": 3})], ""),
    ("F20", '<recall query="a"/>', [_r("a")], ""),
    ("F20b", "search_files pattern='def x' glob=*.py", [("search_files", {"pattern": "def x", "glob": "*.py"})], ""),
    ("F20b", 'Reading it.\nread_file path="a b.py" end_line=20\n', [("read_file", {"path": "a b.py", "end_line": 20})], "Reading it."),
    ("F20b", 'recall query="a"\nrecall query="b"', [_r("a"), _r("b")], ""),
    # F21: prose around
    ("F21", 'Понятно! Ищу.\n\n```json\n{"name": "recall", "arguments": {"query": "a"}}\n```\n\nПодождите немного, пожалуйста.', [_r("a")], "Понятно! Ищу."),
    ("F21", 'I\'ll "check" it (now): <tool_call>{"name": "recall", "arguments": {"query": "a"}}</tool_call> Thanks', [_r("a")], 'I\'ll "check" it (now):'),
    ("F21", "Here is the code:\n\n```python\nx = {'a': 1}\n```\n\nNow I save it.\n{\"name\": \"recall\", \"arguments\": {\"query\": \"a\"}}", [_r("a")], "Here is the code:\n\n```python\nx = {'a': 1}\n```\n\nNow I save it."),
    ("F21", '- first I look\n- then I write\n\n{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], "- first I look\n- then I write"),
    ("F21", '> you asked: where?\n\n{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], "> you asked: where?"),
    ("F21", 'The config is {"debug": true}. I save it.\n{"name": "remember", "arguments": {"fact": "debug on"}}', [("remember", {"fact": "debug on"})], 'The config is {"debug": true}. I save it.'),
    ("F21", 'Use `{` and "[" here. :-(\n{"name": "recall", "arguments": {"query": "a"}}', [_r("a")], 'Use `{` and "[" here. :-('),
    ("F21", 'A 5" disk, rock \'n roll: {"name": "recall", "arguments": {"query": "a"}}', [_r("a")], "A 5\" disk, rock 'n roll:"),
    # F22: braces in strings
    ("F22", '{"name": "recall", "arguments": {"query": "}}}]]"}}', [_r("}}}]]")], ""),
    ("F22", '<tool_call>{"name": "recall", "arguments": {"query": "if (a) { b(\\"}\\") }"}}</tool_call>', [_r('if (a) { b("}") }')], ""),
    ("F22", '{"name": "recall", "arguments": "{\\"query\\": \\"} {\\"}"}', [_r("} {")], ""),
    ("F22", "{'name': 'recall', 'arguments': {'query': '} it\\'s {'}}", [_r("} it's {")], ""),
    # F23: damage
    ("F23", "{'name': 'recall', 'arguments': {'query': 'user doesn't like it'}}", [_r("user doesn't like it")], ""),
    ("F23", '{"name": "recall", "arguments": {"query": "say "hi" now"}}', [_r('say "hi" now')], ""),
    ("F23", '{"name": "list_notes", "arguments": None,}', [("list_notes", {})], ""),
    ("F23", '{"name": "list_notes", "arguments": ""}', [("list_notes", {})], ""),
    ("F23", '{"name": "list_notes"}', [("list_notes", {})], ""),
    ("F23", '{"name": "search_files", "arguments": {"pattern": "\\d{3}\\.py"}}', [("search_files", {"pattern": "\\d{3}\\.py"})], ""),
    ("F23", '{name: "recall", arguments: {query: "a"}}', [_r("a")], ""),
    ("F23", '{"name": "write_todos", "arguments": {"todos": "[\\"a\\", \\"b\\"]"}}', [("write_todos", {"todos": ["a", "b"]})], ""),
    ("F23", "{'name': 'list_notes', 'arguments': {'archived': True,},}", [("list_notes", {"archived": True})], ""),
    ("F23", '{"name": "remember", "arguments": {"fact": "a", "importance": "5"', [("remember", {"fact": "a", "importance": 5})], ""),
    ("F23", '{"name": "recall", "arguments": {"query": "a"}\n\nDone!', [_r("a")], ""),
]  # fmt: skip

NOT_CALLS: list[tuple[str, str]] = [
    ("not offered", '{"tool_calls": [{"name": "rm", "arguments": {"path": "/"}}]}'),
    ("not offered", "<function=run><parameter=cmd><tool_call>{\"name\": \"recall\", \"arguments\": {\"query\": \"a\"}}</tool_call></parameter></function>"),
    ("not offered", '<|python_tag|>brave_search.call(query="recall(query=\\"a\\")")'),
    ("not offered", '[TOOL_CALLS]send[ARGS]{"body": "[TOOL_CALLS]recall[ARGS]{\\"query\\": \\"a\\"}"}'),
    ("not offered", '<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"cmd": "{\\"name\\": \\"recall\\"}"}<|call|>'),
    ("not offered", '{"name": "Recall", "arguments": {"query": "a"}}'),
    ("not offered", '{"name": "recall_all", "arguments": {"query": "a"}}'),
    ("not offered", "<tool_call>send_mail<arg_key>body</arg_key><arg_value><tool_call>recall<arg_key>query</arg_key><arg_value>a</arg_value></tool_call></arg_value></tool_call>"),
    ("not offered", "call:send{body:<|\"|>call:recall{query:x}<|\"|>}"),
    ("not offered", 'send_mail(body="""\nrecall(query="a")\n""")'),
    ("not offered", "```tool_code\nsend_mail(body='recall(query=1)')\n```"),
    ("asked for", '```json\n{"name": "recall", "arguments": {"query": "a"}, "version": 2}\n```'),
    ("asked for", 'Here:\n{"user": {"name": "recall", "arguments": {"query": "a"}}}'),
    ("asked for", '[1, 2, {"name": "recall", "arguments": {"query": "a"}}]'),
    ("asked for", '{"query": "a"}'),
    ("asked for", '{"name": "recall"}'),
    ("asked for", '[{"name": "recall", "arguments": {"query": "a"}}, {"city": "Łódź"}]'),
    ("asked for", '{"name": "recall", "parameters": {"query": "a"}, "enabled": true}'),
    ("fence example", 'Wywołanie ma taki format:\n\n```json\n{"name": "recall", "arguments": {"query": "port"}}\n```\n\nKlucz `name` wybiera narzędzie, a `arguments` niesie jego parametry.'),
    ("fence example", 'Вот пример вызова:\n```json\n{"name": "recall", "arguments": {"query": "порт"}}\n```\nКлюч name выбирает инструмент, а arguments содержит его параметры.'),
    ("fence example", 'To call it, a model would send something like this:\n\n```\n<tool_call>\n{"name": "recall", "arguments": {"query": "port"}}\n</tool_call>\n```\n\nThe client then parses the tag and runs the tool for you.'),
    ("fence example", '```json\n{"name": "remember", "arguments": {"fact": "<the fact>", "category": "<category>"}}\n```'),
    ("fence example", '```json\n{"name": "recall", "arguments": {"query": "your query here"}}\n```'),
    ("fence example", 'Template:\n```tool_code\nrecall(query="...")\n```'),
    ("fence example", '```json\n{"name": "recall", "arguments": {"query": "port"}}\n```\nThis is only an example of the format.'),
    ("fence example", "## Example\n\n```json\n{\"name\": \"recall\", \"arguments\": {\"query\": \"port\"}}\n```\n\nYou can see that the arguments are an object and not a text."),
    ("other fence", '```yaml\n- {"name": "recall", "arguments": {"query": "a"}}\n```'),
    ("other fence", '```js\nrecall({"query": "a"})\n{"name": "recall", "arguments": {"query": "a"}}\n```'),
    ("other fence", "```xml\n<function=recall><parameter=query>a</parameter></function>\n```"),
    ("other fence", '```text\n{"name": "recall", "arguments": {"query": "a"}}\n```'),
    ("other fence", '```http\nPOST /call\n\n{"name": "recall", "arguments": {"query": "a"}}\n'),
    ("result echo", '<tool_response>\n{"name": "recall", "arguments": {"query": "a"}}\n</tool_response>'),
    ("result echo", '{"name": "recall", "arguments": {"query": "a"}, "result": ["x"]}'),
    ("result echo", '{"role": "tool", "name": "recall", "content": "x"}'),
    ("result echo", '> {"name": "recall", "arguments": {"query": "a"}}\n\nThat is what the log said.'),
    ("result echo", '[{"tool_name": "recall", "output": "x"}]'),
    ("larger document", '{"messages": [{"role": "assistant", "tool_calls": [{"name": "recall", "arguments": {"query": "a"}}]}]}'),
    ("larger document", "calls:\n  first = [{'name': 'recall', 'arguments': {'query': 'a'}}]\n"),
    ("larger document", 'const c = {\n  tool: "x",\n  next: {"name": "recall", "arguments": {"query": "a"}}\n};'),
    ("larger document", '<log><entry>{"name": "recall", "arguments": {"query": "a"}}</entry></log>'),
    ("larger document", 'function f() {\n  run({"name": "recall", "arguments": {"query": "a"}});\n}'),
    ("larger document", '```json\n{"a": 1}\n{"name": "recall", "arguments": {"query": "a"}}\n```'),
    ("larger document", '```\nUser: hi\n{"name": "recall", "arguments": {"query": "a"}}\n```'),
    ("larger document", '{"calls": [\n{"name": "recall", "arguments": {"query": "a"}}\n'),
    ("larger document", "{'steps': [{'name': 'recall', 'arguments': {'query': 'it'}}]}"),
    ("tool schema", '{"name": "recall", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}'),
    ("tool schema", '[{"type": "function", "function": {"name": "recall", "description": "d", "parameters": {"type": "object"}}}]'),
    ("tool schema", '<tools>\n{"type": "function", "function": {"name": "list_notes", "parameters": {"type": "object", "properties": {}}}}\n</tools>'),
    ("prose", "recall(query) is the function you want, and search_history too."),
    ("prose", "recall is a metric; remember that."),
    ("prose", "I would call recall(query='port') but I know the answer."),
    ("prose", "recall query of the user: port"),
    ("prose", "remember, the port is 8443"),
    ("prose", "Use call: recall, or to=functions.recall if you like."),
    ("inline code", 'Write `<tool_call>{"name": "recall", "arguments": {"query": "a"}}</tool_call>` then.'),
    ("inline code", '``{"name": "recall", "arguments": {"query": "`x`"}}`` is how it looks.'),
    ("inline code", "`recall(query=\"a\")` would do, and `call:recall{query:a}` as well."),
    ("inline code", 'Some `code` and ```{"name": "recall", "arguments": {"query": "a"}}``` inline.'),
    ("truncated", '[TOOL_CALLS]recall[ARGS]{"query": "port'),
    ("truncated", "<tool_call>recall<arg_key>query</arg_key><arg_value>port"),
    ("truncated", '<|tool_call>call:recall{query:<|"|>port'),
    ("truncated", '```json\n{"name": "edit_file", "arguments": {"path": "a", "old_string": ""'),
    ("truncated", '{"name": "recall", "arguments": {"query":'),
    ("truncated", '{"name": "recall", "argum'),
    ("truncated", "recall(query='port"),
    ("truncated", "<function=edit_file>\n<parameter=path>a</parameter>\n<parameter=old_string>"),
    ("truncated", '{"name": "write_file", "arguments": {"content": "{\\"name\\": \\"recall\\", \\"arguments\\": {\\"query\\": \\"a\\"}} <tool_call>'),
    ("mismatch", '{"name": "recall", "arguments": {"query": ["a"]}}'),
    ("mismatch", '{"name": "recall", "arguments": {"query": 5}}'),
    ("mismatch", '{"name": "recall", "arguments": {"q": "a"}}'),
    ("mismatch", '{"name": "recall", "arguments": {"query": "a", "limit": 5}}'),
    ("mismatch", '{"name": "recall", "arguments": {"query": null}}'),
    ("mismatch", '{"name": "search_history", "arguments": {"query": "a", "limit": "many"}}'),
    ("mismatch", '{"name": "search_history", "arguments": {"query": "a", "limit": 2.5}}'),
    ("mismatch", '{"name": "search_history", "arguments": {"query": "a", "limit": true}}'),
    ("mismatch", '{"name": "write_todos", "arguments": {"todos": [1, 2]}}'),
    ("mismatch", '{"name": "write_todos", "arguments": {"todos": "buy milk"}}'),
    ("mismatch", "<function=recall>\n</function>"),
    ("mismatch", '{"name": "recall", "arguments": "port"}'),
    ("code", '```python\nresult = recall(query="port")\nprint(result)\n```'),
    ("code", '```python\nimport tools\nrecall(query="port")\n```'),
    ("code", "```python\nrecall('port')\n```"),
    ("code", "recall({'query': 'port'})"),
    ("code", "```python\nfor q in qs:\n    recall(query=q)\n```"),
    ("code", 'payload = {"name": "recall", "arguments": {"query": "port"}}'),
    ("code", "read_file(path)"),
    ("code", 'recall(query=f"{x}")'),
    ("code", "recall(query=name)"),
    ("quoted", '„{"name": "recall", "arguments": {"query": "a"}}” napisał bot.'),
    ("quoted", '«<tool_call>{"name": "recall", "arguments": {"query": "a"}}</tool_call>» — так написал бот.'),
    ("quoted", "The bot wrote 'recall(query=\"a\")' and '{\"name\": \"recall\", \"arguments\": {\"query\": \"a\"}}' there."),
    ("quoted", "“call:recall{query:a}” is what it said."),
    ("quoted", '+ {"name": "recall", "arguments": {"query": "a"}}\n- {"name": "recall", "arguments": {"query": "b"}}'),
    ("quoted", '@@ -1,2 +1,2 @@\n {"name": "recall", "arguments": {"query": "a"}}\n-x\n+y'),
    ("quoted", '-{"name": "recall", "arguments": {"query": "a"}}\n+{"name": "recall", "arguments": {"query": "b"}}'),
    ("quoted", '> ```json\n> {"name": "recall", "arguments": {"query": "a"}}\n> ```'),
    ("quoted", '<code>{"name": "recall", "arguments": {"query": "a"}}</code>'),
    ("quoted", '<blockquote>\n<tool_call>{"name": "recall", "arguments": {"query": "a"}}</tool_call>\n</blockquote>'),
    ("plain", "Set {a, b} and [c] and (d) and <e> and `f` and \"g\"."),
    ("plain", "[link](http://x.test/?q={y}) and [ ] todo and [TOOL_CALLS"),
    ("plain", "Use <|im_end|> or <|python_tag|> as a marker. [ARGS] too."),
    ("plain", "<think>I could use recall(query=\"a\") or {\"name\": \"recall\", \"arguments\": {\"query\": \"a\"}}</think>\nThe port is 8443."),
    ("plain", "<command_bash>rm -rf build</command_bash> and <antThinking>hm</antThinking>"),
    ("plain", "The `<function=recall>` tag opens a call, and <function=name> is its general form."),
    ("plain", "| tool | call |\n|---|---|\n| recall | {\"name\": \"recall\", \"arguments\": {\"query\": \"a\"}} |"),
]  # fmt: skip


def _names(rows: list[Any]) -> list[str]:
    seen: dict[str, int] = {}
    for row in rows:
        seen[row[0]] = seen.get(row[0], 0) + 1
    counts = dict.fromkeys(seen, 0)
    names = []
    for row in rows:
        counts[row[0]] += 1
        names.append(f"{row[0]}-{counts[row[0]]}")
    return names


def _streamed(content: str, size: int) -> tuple[list[Call], str]:
    hold = HoldBack(TOOLS)
    shown = "".join(hold.feed(content[start : start + size]) for start in range(0, len(content), size))
    result = hold.finish()
    assert result.text.startswith(shown)
    return [(call.name, call.arguments) for call in result.calls], result.text


@pytest.mark.parametrize(("family", "content", "calls", "text"), CALLS, ids=_names(CALLS))
def test_a_call_of_this_shape_is_found(family: str, content: str, calls: list[Call], text: str) -> None:
    result = rescue(content, TOOLS)
    assert [(call.name, call.arguments) for call in result.calls] == calls
    assert result.text == text
    assert all(call.rescued for call in result.calls)
    for size in (1, 2, 3, 7, 40):
        assert _streamed(content, size) == (calls, text)


@pytest.mark.parametrize(("kind", "content"), NOT_CALLS, ids=_names(NOT_CALLS))
def test_a_text_of_this_kind_is_no_call_and_stays_as_it_came(kind: str, content: str) -> None:
    result = rescue(content, TOOLS)
    assert result.calls == ()
    assert result.text == content
    for size in (1, 2, 3, 7, 40):
        assert _streamed(content, size) == ([], content)
