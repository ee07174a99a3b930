"""Parser of tool calls that a model wrote as text.

One resumable scanner (:mod:`.scanner`) reads the answer from left to right, so that a finished answer and a stream of
it give the same result. At every place where a call could start it asks the grammars for a *unit*:

* :mod:`.objects` JSON objects and arrays, :mod:`.literals` the tolerant JSON and Python literals under them
* :mod:`.pythonic` ``name(key="value")`` and ``name key="value"`` lines
* :mod:`.gemma` ``call:name{key:value}``
* :mod:`.markup` XML-like calls and tags around calls
* :mod:`.markers` special tokens of Mistral, DeepSeek, gpt-oss and others
* :mod:`.units` chooses among them, and reads fences

:mod:`.skips` and :mod:`.hidden` step over what holds no call, :mod:`.context` knows what encloses a place (quotation
marks, inline code, a larger document) and :mod:`.examples` whether a call is only shown, not meant. :mod:`.catalog`
holds the offered tools and checks arguments.

A place that is consumed by a grammar is never searched again: text inside an argument can not become a call.
"""
