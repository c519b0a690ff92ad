"""POST /check: from the request to the verdict."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, cast

from tornado import iostream, web

from gpulab import wire
from gpulab.catalogue import Catalogue, Exercise, load_checks
from gpulab.catalogue.texts import LANGUAGES
from gpulab.evidence.words import lab_message
from gpulab.grading import Request, scratch_folder
from gpulab.model import Device, Grade, LabError, Verdict
from gpulab.service import log, upload
from gpulab.service.client import STOPPED
from gpulab.service.handler import Handler
from gpulab.service.shares import CheckStoppedError
from gpulab.service.stream import Stream

IN_MEMORY = 1 << 20  # bytes of a request that are not put on the disk


@web.stream_request_body
class Check(Handler):
    """A check from its request to its verdict. A client that goes away ends it."""

    def initialize(self) -> None:
        """Begin with nothing taken."""
        self._refusal: tuple[int, str] | None = None
        self._body: BinaryIO | None = None
        self._work: asyncio.Future[None] | None = None
        self._open = False

    def prepare(self) -> None:
        """Decide by the headers; a request that is refused is still read, so that it hears why."""
        if self.request.method != "POST":
            raise web.HTTPError(HTTPStatus.METHOD_NOT_ALLOWED)
        largest = self.desk.limits.upload_mib << 20
        length = self.request.headers.get("Content-Length", "")
        if not length.isdecimal():
            self._refusal = (411, "The request must say its length.")
        elif int(length) > largest:
            return self.refuse(413, f"The request is larger than {largest >> 20} MiB.")
        elif self.desk.office.stopping:
            self._refusal = (503, STOPPED.texts["en"])
        elif not self.desk.begin_check():
            self._refusal = (
                429,
                f"You have {self.desk.limits.checks} checks open; wait for their verdicts first.",
            )
        else:
            self._open = True
            self._body = cast("BinaryIO", tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115 - closed by _release
        connection = cast("Any", self.request.connection)
        connection.set_max_body_size(largest if length else 0)
        return None

    def data_received(self, chunk: bytes) -> None:
        """Keep a part of the body."""
        if self._body is not None:
            self._body.write(chunk)

    async def post(self) -> None:
        """Answer, once the body is there."""
        if self._refusal is not None:
            return self.refuse(*self._refusal)
        self._work = asyncio.ensure_future(self._answer())
        self.desk.office.checks.add(self._work)
        try:
            await self._work
        finally:
            self.desk.office.checks.discard(self._work)
            self._release()

    def on_connection_close(self) -> None:
        """The client has gone: so does its check."""
        if self._work is not None:
            self._work.cancel()
        else:
            self._release()

    def on_finish(self) -> None:
        """Give the place back, also after a refusal half-way."""
        self._release()

    def _release(self) -> None:
        if self._open:
            self._open = False
            self.desk.end_check()
        if self._body is not None:
            self._body.close()
            self._body = None

    async def _answer(self) -> None:
        with scratch_folder() as scratch:
            try:
                request = await asyncio.to_thread(self._unpack, scratch / "work")
            except upload.UploadError as error:
                return self.refuse(400, str(error))
            except LabError as error:
                return self.refuse(404, str(error))
            self.set_header("Content-Type", "application/jsonl")
            stream = Stream(self._send)
            try:
                await self._judge(request, stream)
            finally:
                stream.closed = True
                await self._finish_within(self.desk.limits.upload_seconds)
        return None

    def _unpack(self, target: Path) -> Request:
        body = cast("BinaryIO", self._body)
        body.seek(0)
        try:
            head = upload.unpack(body, target)
        except (FileExistsError, NotADirectoryError):
            raise upload.UploadError("Two of the request's files have one name.") from None
        try:
            device = None if head.device is None else Device(head.device)
        except ValueError:
            raise upload.UploadError(f"There is no device {head.device[:40]!r}.") from None  # type: ignore[index]
        root = self.desk.office.root
        return Request(root, Catalogue(root).find(head.exercise), target, device)

    async def _judge(self, request: Request, stream: Stream) -> None:
        """Wait for the turn, judge, say the verdict."""
        share, seat = self.desk.share, self.desk.name
        log.info("check asked", seat=seat, exercise=request.exercise.name)
        stream.send("accepted", level=self.desk.level)
        begun = time.monotonic()
        ticket = share.queue.enter(seat, lambda ahead: stream.send("queued", ahead=ahead))
        try:
            await ticket.turn
            waited = time.monotonic() - begun
            grade = await share.judge(request, lambda event: self._hear(event, request, stream))
        except CheckStoppedError as error:
            log.error("check stopped", seat=seat, exercise=request.exercise.name, why=str(error))
            stream.send("stopped", reason=wire.to_json(lab_message("check_too_long")))
        except LabError as error:
            stream.send("failed", text=self.fault(error))
        except asyncio.CancelledError:
            log.info("check given up", seat=seat, exercise=request.exercise.name)
            stream.send("stopped", reason=wire.to_json(STOPPED))
        except Exception as error:  # noqa: BLE001 - the last resort: a sentence to the client
            stream.send("failed", text=self.fault(error))
        else:
            await self._tell(request.exercise, grade, waited, stream)
        finally:
            share.queue.leave(ticket)
            self.desk.office.refill_soon(share)

    def _hear(self, event: dict[str, Any], request: Request, stream: Stream) -> None:
        """Take an event of the grading process, in its thread."""
        if event["event"] == "crash":
            self.desk.office.keep_account(self.desk.name, request.exercise.name, event["text"])
        else:
            stream.publish(event)

    async def _tell(self, exercise: Exercise, grade: Grade, waited: float, stream: Stream) -> None:
        """Record the verdict, then say it: who has seen a verdict finds it in the record."""
        recorded = True
        try:
            await asyncio.to_thread(self.desk.records.add, grade)
        except LabError as error:
            self.fault(error)
            recorded = False
        log.info(
            "check judged",
            seat=self.desk.name,
            exercise=exercise.name,
            verdict=grade.verdict.value,
            waited_s=round(waited, 2),
            seconds=grade.seconds,
        )
        debrief = {}
        if grade.verdict is Verdict.FIXED:
            checks = await asyncio.to_thread(load_checks, self.desk.office.root, exercise)
            debrief = {language: checks.debrief(language) for language in LANGUAGES}
        stream.send("grade", grade=wire.to_json(grade), debrief=debrief, recorded=recorded)

    def _send(self, data: bytes) -> asyncio.Future[None]:
        try:
            self.write(data)
            return self.flush()
        except iostream.StreamBufferFullError:  # a client that asks and never reads
            self.detach_slow_client()
            return asyncio.get_running_loop().create_future()

    def detach_slow_client(self) -> None:
        """Close the connection at once; `on_connection_close` follows."""
        cast("Any", self.request.connection).stream.close()

    async def _finish_within(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(cast("Awaitable[None]", self.finish()), seconds)
        except (TimeoutError, iostream.StreamClosedError, iostream.StreamBufferFullError):
            self.detach_slow_client()
