"""The attempt side is small, plain, and of Python 3.9."""

import ast
import sys
from pathlib import Path

import pytest

from gpulab.attempts import Call, Ended, child

SOURCE = Path(child.__file__).read_text(encoding="utf-8")
PROBE = """
import torch
from gpulab_attempt import mark

def types(script):
    mark("begin")
    narrow = [torch.bfloat16, torch.float8_e5m2]
    kept = [torch.float16, torch.float32, torch.int64, torch.bool, torch.complex64]
    return [torch.ones(2).to(t) for t in narrow + kept]

def views(script):
    base = torch.arange(6.0, requires_grad=True).reshape(2, 3).t()
    return {"a": base, "b": base, "empty": torch.zeros(0, 3), "scalar": torch.tensor(1)}

def sparse(script):
    return torch.eye(2).to_sparse()

def echo(script, value):
    return value
"""


def test_it_is_python_3_9() -> None:
    ast.parse(SOURCE, feature_version=(3, 9))


def imported(nodes) -> set[str]:
    return {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}


def test_it_imports_the_standard_library_alone_until_a_tensor_comes() -> None:
    tree = ast.parse(SOURCE)
    at_the_top, anywhere = imported(tree.body), imported(ast.walk(tree))
    assert {name.split(".")[0] for name in at_the_top} <= sys.stdlib_module_names
    later = {n for n in anywhere if n.split(".")[0] not in sys.stdlib_module_names}
    assert later == {"safetensors.torch"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_a_function_gets_its_arguments(attempt) -> None:
    script = "def f(a, *rest, **named):\n    return [a, list(rest), named]\n"
    made = attempt(script, call=Call("f", (1, "x", [None]), {"k": {"z": 2.5}}))
    assert made.answer == [1, ["x", [None]], {"k": {"z": 2.5}}]
    assert (made.ended, made.exit_code, made.error) == (Ended.EXIT, 0, None)


def test_a_path_is_a_path(attempt, tmp_path: Path) -> None:
    script = "def f(path):\n    return [path / 'x', path.is_dir()]\n"
    assert attempt(script, call=Call("f", (tmp_path,))).answer == [tmp_path / "x", True]


def test_the_script_is_a_module_of_its_own_name(attempt) -> None:
    script = "import sys\ndef f():\n    return [__name__, sys.argv, sys.path[0] in __file__]\n"
    assert attempt(script, call=Call("f")).answer == ["train", ["train.py"], True]


@pytest.mark.parametrize(
    ("body", "kind", "line", "source"),
    [
        ("raise ValueError('no')", "ValueError", 2, "raise ValueError('no')"),
        ("raise SystemExit(3)", "SystemExit", 2, "raise SystemExit(3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", 2, "raise KeyboardInterrupt"),
        ("import json; json.loads('{')", "JSONDecodeError", 2, "import json; json.loads('{')"),
        ("__import__('os').chdir('/'); {}[1]", "KeyError", 2, "__import__('os').chdir('/'); {}[1]"),
        ("return object()", "AnswerError", None, None),
        ("return {1, 2}", "AnswerError", None, None),
        ("a = []; a.append(a); return a", "AnswerError", None, None),
    ],
)  # fmt: skip
def test_an_exception_is_told_with_its_line(attempt, body, kind, line, source) -> None:
    made = attempt(f"def f():\n    {body}\n", call=Call("f"))
    assert not made.answered
    assert (made.error.type, made.error.line, made.error.source) == (kind, line, source)
    assert made.error.file == ("train.py" if line else None)


def test_a_function_that_is_not_there(attempt) -> None:
    made = attempt("x = 1\n", call=Call("f"))
    assert (made.error.type, "'f'" in made.error.message) == ("AttributeError", True)


def test_a_syntax_error_has_its_line(attempt) -> None:
    made = attempt("x = 1\ndef (\n", call=Call("f"))
    assert (made.error.type, made.error.file, made.error.line) == ("SyntaxError", "train.py", 2)
    assert made.error.source == "def ("


def test_a_module_of_the_attendee_next_to_the_script(attempt, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "helper.py").write_text("VALUE = 5\n")
    assert attempt("import helper\ndef f():\n    return helper.VALUE\n", call=Call("f")).answer == 5


def test_tensors_and_marks_of_a_probe(attempt, tmp_path: Path) -> None:
    """One attempt for several answers: each imports torch, which takes seconds."""
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE + "\ndef both(script):\n    return [types(script), views(script)]\n")
    made = attempt("", call=Call("both", probe=probe))
    types, views = made.answer
    kinds = [str(array.dtype) for array in types]
    narrow, kept = ["float32"] * 2, ["float16", "float32", "int64", "bool", "complex64"]
    assert kinds == narrow + kept
    assert [array.sum() for array in types[:4]] == [2.0] * 4
    assert views["a"].tolist() == views["b"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert (views["empty"].shape, views["scalar"].shape) == ((0, 3), ())
    ((at, name),) = made.marks
    assert name == "begin"
    assert 0 < at < made.evidence.wall


def test_a_tensor_that_cannot_travel(attempt, tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE)
    made = attempt("", call=Call("sparse", probe=probe))
    assert made.error.type == "AnswerError"
