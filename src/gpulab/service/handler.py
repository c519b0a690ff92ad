"""What every request to the service has in common."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Any, cast

from tornado import web

from gpulab.service import log
from gpulab.service.desk import Desk

_SENTENCES = {
    HTTPStatus.NOT_FOUND: "The grader knows no such request.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The grader knows no such request.",
}


class Handler(web.RequestHandler):
    """Errors as JSON, and nothing of the inside in them."""

    SUPPORTED_METHODS = ("GET", "POST")

    @property
    def desk(self) -> Desk:
        """The seat that asks: the socket which the request came by."""
        return cast("Desk", self.application.settings["desk"])

    def set_default_headers(self) -> None:
        """JSON, and no word on what serves it."""
        self.clear_header("Server")
        self.set_header("Content-Type", "application/json")

    def refuse(self, status: int, sentence: str) -> None:
        """Answer with a sentence."""
        self.set_status(status)
        self.finish({"error": sentence})

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer for an exception: tornado's own, or a fault of ours."""
        if status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            sentence = self.fault(kwargs.get("exc_info", (None, None))[1])
        else:
            sentence = _SENTENCES.get(HTTPStatus(status_code), "The request cannot be understood.")
        self.finish({"error": sentence})

    def fault(self, failure: BaseException | None) -> str:
        """Keep the details of a fault of the lab here; the sentence names where to find them."""
        reference = secrets.token_hex(4)
        log.error("fault", failure=failure, seat=self.desk.name, reference=reference)
        return f"The grader failed; this is not your fault. Tell your trainer: {reference}."

    def log_exception(self, *_: Any) -> None:
        """Nothing: `write_error` has logged it."""
