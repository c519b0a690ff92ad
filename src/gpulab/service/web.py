"""What a seat may ask of the service, over HTTP on its own socket.

POST /check      upload.py's bytes; answers with events, JSON lines, the last one the verdict
GET  /progress   best verdict, number of checks and hints taken, by exercise
GET  /grades     every verdict
POST /hints      {"exercise": "exercise-4", "number": 1}
GET  /export     the whole record
GET  /health     whether checks are taken

An error is {"error": "one sentence"}.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tornado import web

from gpulab.service import log
from gpulab.service.checks import Check
from gpulab.service.desk import Desk
from gpulab.service.handler import Handler
from gpulab.service.questions import Export, Grades, Health, Hints, Progress

MAX_QUESTION = 1 << 16  # bytes of a request that is no check


class _Unknown(Handler):
    def prepare(self) -> None:
        raise web.HTTPError(HTTPStatus.NOT_FOUND)


def application(desk: Desk) -> web.Application:
    """The routes for one seat."""
    routes: list[Any] = [
        ("/check", Check),
        ("/progress", Progress),
        ("/grades", Grades),
        ("/hints", Hints),
        ("/export", Export),
        ("/health", Health),
    ]
    return web.Application(
        routes, desk=desk, default_handler_class=_Unknown, log_function=_log_request
    )


def _log_request(handler: web.RequestHandler) -> None:
    request = handler.request
    log.debug(
        "request",
        seat=handler.application.settings["desk"].name,
        method=request.method,
        path=request.path[:100],
        status=handler.get_status(),
        seconds=round(request.request_time(), 3),
    )
