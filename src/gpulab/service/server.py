"""Sockets and signals: the life of the service."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_unix_socket

from gpulab.model import LabError
from gpulab.service import log, web
from gpulab.service.config import Config, Limits, Seat
from gpulab.service.desk import Desk, Office

MAX_HEADERS = 1 << 14
MAX_UNREAD = 8 << 20  # bytes that may wait for a client that does not read
BACKLOG = 64
OTHER_THREADS = 16  # for records, uploads, and for ending checks


class SeatServer(HTTPServer):
    """HTTP on one seat's socket, a bounded number of connections at once."""

    def initialize(self, desk: Desk) -> None:  # type: ignore[override]
        """Serve `desk`."""
        limits = desk.limits
        self._desk, self._connected = desk, 0
        super().initialize(
            web.application(desk),
            max_header_size=MAX_HEADERS,
            max_body_size=web.MAX_QUESTION,
            max_buffer_size=1 << 20,
            chunk_size=1 << 16,
            idle_connection_timeout=limits.upload_seconds,
            body_timeout=limits.upload_seconds,
        )

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Take a connection, or close it where the seat has too many."""
        if self._connected >= self._desk.limits.connections:
            log.debug("too many connections", seat=self._desk.name)
            stream.close()
            return
        self._connected += 1
        stream.max_write_buffer_size = MAX_UNREAD
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Count one less."""
        self._connected -= 1
        super().on_close(server_conn)


@contextlib.contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold the state folder, swept of what a killed service left in it.

    Raises:
        LabError: another service holds it, or it cannot be written.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}; mend that.", code=4) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _sweep(state / "scratch")
        yield
    except BlockingIOError:
        raise LabError(f"Another service uses {state}; stop that one first.", code=4) from None
    finally:
        os.close(lock)


def _sweep(scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700, exist_ok=True)
    # For this process and for every grading process that it starts.
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)


def open_socket(seat: Seat) -> socket.socket:
    """A seat's listening socket, which its owner alone may connect to.

    Whoever can write to the folder could put another socket there: it must be root's.

    Raises:
        LabError: the socket cannot be made.
    """
    path = Path(seat.socket)
    try:
        _make_open(path.parent)
        listener = bind_unix_socket(seat.socket, mode=0o600, backlog=BACKLOG)
        if (os.geteuid(), os.getegid()) != (seat.uid, seat.gid):
            os.chown(path, seat.uid, seat.gid, follow_symlinks=False)
    except (OSError, ValueError) as error:
        raise LabError(f"The socket {path} cannot be made ({error}); mend that.", code=4) from None
    return listener


def _make_open(folder: Path) -> None:
    """Make a folder that everybody may enter, whatever the umask."""
    if not folder.is_dir():
        _make_open(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


async def serve(config: Config) -> None:
    """Serve every seat until a signal says stop.

    Raises:
        LabError: a socket cannot be made.
    """
    loop = asyncio.get_running_loop()
    office = Office(config)
    threads = len(config.shares) + OTHER_THREADS
    loop.set_default_executor(ThreadPoolExecutor(threads, thread_name_prefix="grader"))
    stop, servers = asyncio.Event(), []
    for name, seat in config.seats.items():
        server = SeatServer(Desk(name, office))
        server.add_socket(open_socket(seat))
        servers.append(server)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: _replace_spares(office))
    for share in office.shares.values():
        office.refill_soon(share)
    _tell_systemd("READY=1")
    log.info("serving", seats=len(servers), shares=len(office.shares))
    await stop.wait()
    _tell_systemd("STOPPING=1")
    await _end(office, servers, config.limits)
    await asyncio.to_thread(_remove_sockets, config)
    log.info("stopped")


def _remove_sockets(config: Config) -> None:
    for seat in config.seats.values():
        Path(seat.socket).unlink(missing_ok=True)


async def _end(office: Office, servers: list[SeatServer], limits: Limits) -> None:
    """Take nothing more, tell who waits, let what runs end in time, end the rest."""
    office.stopping = True
    log.info("stopping", checks=len(office.checks))
    for server in servers:
        server.stop()
    for share in office.shares.values():
        share.queue.dismiss()
    if office.checks:
        await asyncio.wait(list(office.checks), timeout=limits.grace_seconds)
    for check in list(office.checks):
        check.cancel()
    if office.checks:
        await asyncio.wait(list(office.checks))
    for share in office.shares.values():
        await asyncio.to_thread(share.spare.close)
    for server in servers:
        await server.close_all_connections()


def _replace_spares(office: Office) -> None:
    log.info("grading processes at the ready are replaced")
    for share in office.shares.values():
        asyncio.get_running_loop().run_in_executor(None, share.spare.replace)


def _tell_systemd(state: str) -> None:
    if address := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect(address.replace("@", "\0", 1) if address[0] == "@" else address)
            notify.send(state.encode())
