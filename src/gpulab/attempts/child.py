"""The attempt side: call one function of the attendee's script and answer over a pipe.

    python child.py REQUEST_FD ANSWER_FD
    python child.py --wait STAGE MODULE,... CONTROL_FD ANSWER_FD

The second way imports the modules, says over the control socket that it is ready, and waits for
one job, which may also be to run the script, just as `python train.py` does. STAGE is a folder of
the sandbox to put the job's files in, and empty where there is no sandbox.

Runs under the stack's Python (3.9 and later) on the standard library, torch and safetensors alone.
A message is an 8-byte length, JSON, an 8-byte length, safetensors bytes; the JSON holds
`{"$tensor": name}` and `{"$path": text}` where a tensor or a path stood. Never a pickle.
"""

import atexit
import builtins
import contextlib
import importlib
import importlib.machinery
import importlib.util
import json
import linecache
import os
import pathlib
import struct
import sys
import threading
import traceback
import types

LENGTH = struct.Struct("<Q")


def main(request_fd, answer_fd):
    os.set_inheritable(answer_fd, False)
    with os.fdopen(request_fd, "rb") as pipe:
        request, blob = read_message(pipe)
    sys.path[0] = os.getcwd()
    answer_call(request, blob, answer_fd)


def wait(stage, modules, control_fd, answer_fd):
    """Get ready, and do the one job that comes; end where none comes."""
    os.set_inheritable(control_fd, False)
    os.set_inheritable(answer_fd, False)
    os.read(control_fd, 1)  # from now on the grader knows us, and a session may be ours
    with contextlib.suppress(PermissionError):  # in a sandbox it is ours already
        os.setsid()
    for name in modules:
        importlib.import_module(name)
    say_ready(control_fd, stage)
    with os.fdopen(control_fd, "rb") as pipe:
        job, blob = read_message(pipe)
        unpack(pipe, stage, job["files"])
        os.write(control_fd, b"!")  # from here on, whatever happens is the job's doing
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    if job["fresh"]:
        command = [sys.executable, job["script"], *job["arguments"]]
        os.execv(sys.executable, command)  # noqa: S606 - a shell would only be in the way
    forget_the_wait()
    if job["function"] is None:
        os.close(answer_fd)
        run_script(job["script"], job["arguments"])
    else:
        answer_call(job, blob, answer_fd)


def say_ready(control_fd, stage):
    """Send the names of what is imported, and in a sandbox the folder that the grader may read."""
    import socket  # noqa: PLC0415 - only who waits needs it

    names = json.dumps(sorted({name.partition(".")[0] for name in sys.modules})).encode()
    folders = [os.open(stage, os.O_RDONLY | os.O_DIRECTORY)] if stage else []
    with socket.socket(fileno=os.dup(control_fd)) as control:
        socket.send_fds(control, [LENGTH.pack(len(names))], folders)
        control.sendall(names)
    for folder in folders:
        os.close(folder)


def unpack(pipe, stage, files):
    """Write the job's files, [name, size], to the stage; a size of None makes a folder."""
    for name, size in files:
        path = pathlib.Path(stage, name)
        if size is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pipe.read(size))


def forget_the_wait():
    """Undo what modules remembered of the place where we waited."""
    sys.path.insert(0, os.getcwd())
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].ORIGINAL_DIR = os.getcwd()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None


def run_script(script, arguments):
    """Do what `python SCRIPT ARGUMENTS...` does: run it as `__main__`."""
    path = str(pathlib.Path.cwd() / script)
    sys.argv = [script, *arguments]
    if hasattr(sys, "orig_argv"):  # since 3.10
        sys.orig_argv = [sys.executable, *sys.argv]
    module = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    vars(module).update(__file__=path, __cached__=None, __loader__=loader, __builtins__=builtins)
    vars(module).setdefault("__annotations__", {})
    sys.modules["__main__"] = module
    try:
        code = compile(pathlib.Path(path).read_bytes(), path, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - what we are here for
    except SystemExit:
        raise
    except BaseException as error:
        # Shown here, without our own frame; then the interpreter ends as it would have, in silence.
        error.__traceback__ = error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        sys.excepthook = lambda *_: None
        raise


def answer_call(request, blob, answer_fd):
    """Call what the request names, and say what came of it."""
    home = os.getcwd()
    sys.argv = [request["script"]]
    sys.modules["gpulab_attempt"] = attempt_module(answer_fd)
    try:
        answer = {"value": call(request, blob)}
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are answers, too
        answer = {"error": describe(error, home + os.sep)}
    write_message(answer_fd, answer)
    end()


def end():
    """End as an interpreter does, but for taking every module apart: that costs a second of CPU."""
    threading._shutdown()  # noqa: SLF001 - what the interpreter calls, as the next one
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


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


def read_message(pipe):
    size = pipe.read(LENGTH.size)
    if not size:
        sys.exit()  # nobody wants us any more
    message = json.loads(pipe.read(LENGTH.unpack(size)[0]))
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
    if sys.argv[1] == "--wait":
        del sys.path[0]  # our own folder: no module of ours may stand for one of theirs
        stage, modules = sys.argv[2], filter(None, sys.argv[3].split(","))
        wait(stage, modules, int(sys.argv[4]), int(sys.argv[5]))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]))
