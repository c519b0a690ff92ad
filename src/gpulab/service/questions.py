"""Requests that are answered at once: progress, verdicts, hints, the whole record, health."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from gpulab.catalogue import Catalogue
from gpulab.model import LabError
from gpulab.service.handler import Handler


class Health(Handler):
    """Whether checks are taken."""

    def get(self) -> None:
        """Answer."""
        desk = self.desk
        self.finish(
            {
                "status": "stopping" if desk.office.stopping else "ok",
                "level": desk.level,
                "ahead": len(desk.share.queue),
                "ready": desk.share.spare.ready,
            }
        )


class Progress(Handler):
    """By exercise: best verdict, number of checks, hints taken."""

    async def get(self) -> None:
        """Answer."""
        await self.finish(await asyncio.to_thread(self._look))

    def _look(self) -> dict[str, Any]:
        records = self.desk.records
        best = {name: verdict.value for name, verdict in records.best().items()}
        return {"best": best, "checks": records.counts(), "hints": records.hints_taken()}


class Grades(Handler):
    """Every verdict, a JSON list."""

    async def get(self) -> None:
        """Answer."""
        self.write("[")
        await self._write_grades()
        await self.finish("]")

    async def _write_grades(self) -> None:
        """All of them, a page in memory at a time, as quickly as the client reads."""
        pages: Iterator[str] = self.desk.records.pages()
        while page := await asyncio.to_thread(next, pages, ""):
            self.write(page)
            await self.flush()


class Export(Grades):
    """The seat's whole record, a JSON object."""

    async def get(self) -> None:
        """Answer."""
        hints = await asyncio.to_thread(self.desk.records.hint_times)
        head = json.dumps({"seat": self.desk.name, "hints": hints})
        self.write(head.removesuffix("}") + ', "grades": [')
        await self._write_grades()
        await self.finish("]}")


class Hints(Handler):
    """Notes that a hint was shown."""

    async def post(self) -> None:
        """Note it."""
        try:
            said = json.loads(self.request.body)
            exercise, number = said["exercise"], said["number"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return self.refuse(400, "A hint is noted as JSON with exercise and number.")
        if type(number) is not int or not isinstance(exercise, str):
            return self.refuse(400, "A hint's exercise is text, its number a whole number.")
        try:
            chosen = Catalogue(self.desk.office.root).find(exercise)
        except LabError as error:
            return self.refuse(404, str(error))
        count = len(chosen.hints("en"))
        if not 1 <= number <= count:
            return self.refuse(400, f"{chosen.name} has the hints 1 to {count}.")
        await asyncio.to_thread(self.desk.records.take_hint, chosen.name, number)
        return self.write({})
