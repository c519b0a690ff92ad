"""The attempt side: call one function of the attendee's script and answer over a pipe.

    python child.py REQUEST_FD ANSWER_FD

Runs under the stack's Python (3.9 and later) on the standard library, torch and safetensors alone.
A message is an 8-byte length, JSON, an 8-byte length, safetensors bytes; the JSON holds
`{"$tensor": name}` and `{"$path": text}` where a tensor or a path stood. Never a pickle.
"""

import importlib
import importlib.util
import json
import linecache
import os
import pathlib
import struct
import sys
import traceback
import types

LENGTH = struct.Struct("<Q")


def main(request_fd, answer_fd):
    os.set_inheritable(answer_fd, False)
    request, blob = read_message(request_fd)
    home = os.getcwd()
    sys.argv = [request["script"]]
    sys.path[0] = home
    sys.modules["gpulab_attempt"] = attempt_module(answer_fd)
    try:
        answer = {"value": call(request, blob)}
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are answers, too
        answer = {"error": describe(error, home + os.sep)}
    write_message(answer_fd, answer)


def call(request, blob):
    script = importlib.import_module(pathlib.Path(request["script"]).stem)
    tensors = load_tensors(blob)  # after the script, which may set torch's environment first
    arguments = decode(request["args"], tensors)
    keywords = decode(request["kwargs"], tensors)
    if request["probe"] is None:
        return getattr(script, request["function"])(*arguments, **keywords)
    probe = load_probe(request["probe"])
    return getattr(probe, request["function"])(script, *arguments, **keywords)


def load_probe(path):
    spec = importlib.util.spec_from_file_location("probe", path)
    probe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(probe)
    return probe


def attempt_module(answer_fd):
    """The module `gpulab_attempt`, by which a probe marks moments in time."""
    module = types.ModuleType("gpulab_attempt")
    module.mark = lambda name: write_message(answer_fd, {"mark": str(name)})
    return module


def describe(error, home):
    """The exception in JSON, with the innermost line that stands in the work folder."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(home)]
    where = {}
    if isinstance(error, SyntaxError) and str(error.filename).startswith(home):
        where = {"file": error.filename[len(home) :], "line": error.lineno}
    elif frames:
        where = {"file": frames[-1].filename[len(home) :], "line": frames[-1].lineno}
    if where:
        where["source"] = linecache.getline(home + where["file"], where["line"] or 0).strip()
    return {"type": type(error).__name__, "message": str(error), **where}


def encode(value, tensors):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        name = str(len(tensors))
        tensors[name] = readable(torch, value.detach().cpu()).contiguous().clone()
        return {"$tensor": name}
    if isinstance(value, pathlib.PurePath):
        return {"$path": str(value)}
    if isinstance(value, dict):
        return {str(key): encode(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item, tensors) for item in value]
    return value


def readable(torch, tensor):
    """The same values in a type that numpy knows: it has neither bfloat16 nor 8-bit floats."""
    known = (torch.float16, torch.float32, torch.float64)
    return tensor.float() if tensor.is_floating_point() and tensor.dtype not in known else tensor


def decode(value, tensors):
    if isinstance(value, dict):
        if value.keys() == {"$tensor"}:
            return tensors[value["$tensor"]]
        if value.keys() == {"$path"}:
            return pathlib.Path(value["$path"])
        return {key: decode(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    return value


def read_message(fd):
    with os.fdopen(fd, "rb") as pipe:
        (size,) = LENGTH.unpack(pipe.read(LENGTH.size))
        message = json.loads(pipe.read(size))
        (size,) = LENGTH.unpack(pipe.read(LENGTH.size))
        return message, pipe.read(size)


def load_tensors(blob):
    if not blob:
        return {}
    import safetensors.torch  # noqa: PLC0415 - imports torch

    return safetensors.torch.load(blob)


def write_message(fd, message):
    try:
        data = pack(message)
    except Exception as error:  # noqa: BLE001 - whatever the answer holds, the grader is told
        what = "%s: %s" % (type(error).__name__, error)
        data = pack({"error": {"type": "AnswerError", "message": what}})
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def pack(message):
    tensors = {}
    text = json.dumps(encode(message, tensors)).encode()
    blob = b""
    if tensors:
        import safetensors.torch  # noqa: PLC0415 - imports torch

        blob = safetensors.torch.save(tensors)
    return LENGTH.pack(len(text)) + text + LENGTH.pack(len(blob)) + blob


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
