"""Runs the tour's code as a notebook would: one namespace, the last expression shown.

Runs beside torch, on the stack's Python: 3.9 and later, nothing of ours. A line of JSON asks
({"code": ...}), a line of JSON answers ({"shown": ..., "error": ...}).
"""

import ast
import contextlib
import io
import json
import os
import sys
import traceback


def run(code: str, namespace: "dict[str, object]") -> str:
    """What the code prints, and the value of its last expression, as text."""
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(tree, "<tour>", "exec"), namespace)  # noqa: S102 - our own code
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<tour>", "eval"), namespace)  # noqa: S307
            if value is not None:
                print(repr(value))
    return shown.getvalue()


def main() -> None:
    """Answer until there is nothing more to read."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a worker prints is no answer
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        answer: dict[str, str | None] = {"shown": "", "error": None}
        try:
            answer["shown"] = run(json.loads(line)["code"], namespace)
        except Exception:  # noqa: BLE001 - the step's own, told to whoever asked
            answer["error"] = traceback.format_exc()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
