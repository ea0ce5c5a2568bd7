"""Runs examples (>>> ...) as doctest does, and those that await, too."""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import sys

_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _run_one(example, names, loop):
    code = compile(example.source, f"<line {example.lineno + 1}>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    out = io.StringIO()
    shown, sys.displayhook = sys.displayhook, sys.__displayhook__
    try:
        with contextlib.redirect_stdout(out):
            result = eval(code, names)
            if inspect.iscoroutine(result):
                loop.run_until_complete(result)
    finally:
        sys.displayhook = shown
    return out.getvalue()


def run_examples(text, names, loop):
    """Runs all examples of a text, which share `names`. Raises AssertionError for one that prints something else."""
    asyncio.set_event_loop(loop)
    examples = doctest.DocTestParser().get_examples(text)
    for example in examples:
        got = _run_one(example, names, loop)
        assert doctest.OutputChecker().check_output(example.want, got, _OPTIONS), (
            f"line {example.lineno + 1}: >>> {example.source}expected\n{example.want}\ngot\n{got}")
    return len(examples)
