"""The attempt side: a process that has torch imported and starts others by forking.

    python fork_server.py MODULE,... SOCKET_FD

A message over the socket, JSON with descriptors, asks for one process; the answer is its id. The
descriptors become its own, numbered from 0; it becomes a child of whoever reaps for the asker. An
empty command asks for an attempt that waits for its job (see `wait` in child.py). Any other command
is executed; the descriptor after those it was given is a fork server of its own, a copy of this
one and its child.

Runs under the stack's Python (3.9 and later). The one thread that importing torch starts, numpy's
OpenBLAS's, is ended before a fork and started again after it by that library itself.
"""

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import pathlib
import signal
import socket
import sys

MESSAGE_BYTES = 1 << 17
DESCRIPTORS = 16
CONTROL, ANSWER = 3, 4  # of a waiting attempt, after its standard streams


def serve(server):
    """Start what is asked for; returns in an attempt, never in the server."""
    while True:
        data, fds, _, _ = socket.recv_fds(server, MESSAGE_BYTES, DESCRIPTORS)
        if not data:
            os._exit(0)  # nobody is left to ask
        request = json.loads(data)
        if fork_for(server, fds):
            continue
        if not request["command"]:
            server.close()
            renumber(fds)
            return
        os.setsid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.close()
        if os.fork():
            renumber([*fds, theirs.fileno()])
            os.execve(request["command"][0], request["command"], request["environment"])  # noqa: S606 - no shell
        for fd in fds:
            os.close(fd)
        theirs.close()
        server = ours


def fork_for(server, fds):
    """Fork a process that is nobody's child but the asker's; True in the server."""
    read_fd, write_fd = os.pipe()
    between = os.fork()
    if between:
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as pipe:
            pid = pipe.read()
        os.waitpid(between, 0)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(BrokenPipeError):
            server.send(pid)
        return True
    os.close(read_fd)
    pid = os.fork()
    if pid:
        os.write(write_fd, str(pid).encode())
        os._exit(0)
    os.close(write_fd)
    return False


def renumber(fds):
    """Make descriptors 0, 1, 2, ... of these, inheritable, and close all others."""
    high = [os.dup(fd) for fd in fds]
    while min(high) < len(fds):  # none may lie where another will go
        high = [os.dup(fd) for fd in high]
    for number, fd in enumerate(high):
        os.dup2(fd, number)
    os.closerange(len(fds), max(high) + 1)


def draw_afresh():
    """Seed what every process seeds for itself; Python's own generator does it after a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:  # CUDA's generators begin with the same seed everywhere
        sys.modules["torch"].default_generator.seed()


def main(modules, server_fd):
    del sys.path[0]  # our own folder: no module of ours may stand for one of theirs
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever asks
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else the first collection of every copy copies all the memory of what is here
    server = socket.socket(fileno=server_fd)
    server.send(b"ready")
    serve(server)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw_afresh()
    # Not in sys.modules: it would stand for a module of theirs of that name.
    child = pathlib.Path(__file__).with_name("child.py")
    spec = importlib.util.spec_from_file_location("child", child)
    attempt = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(attempt)
    attempt.wait("", [], CONTROL, ANSWER)


if __name__ == "__main__":
    main(sys.argv[1].split(","), int(sys.argv[2]))
