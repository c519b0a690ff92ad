"""The invoke commands, one module a namespace."""

import re
import sys

from invoke import Collection

from gpulab.tasks import attendee, checking

_QUICK = {"check", "check.all", "list", "hint", "show", "reset"}
_THEIR_WORDS = re.compile(r"-.*|(exercise-)?[0-9]+|cpu|cuda|rehearsal")


def _attendees() -> Collection:
    everything = Collection()
    for task in (attendee.show, attendee.run, attendee.hint, attendee.reset, attendee.pack):
        everything.add_task(task)
    everything.add_task(attendee.list_, name="list")
    check = Collection("check")
    check.add_task(checking.check, name="one", default=True)
    check.add_task(checking.check_all, name="all")
    everything.add_collection(check)
    return everything


def _add_others(everything: Collection) -> None:
    from gpulab.tasks import author, developer, doctor, images, map, measure, tour  # noqa: A004, PLC0415 - see below

    exercises = Collection("exercise")
    exercises.add_task(author.new)
    exercises.add_task(author.verify)
    everything.add_collection(exercises)

    image_tasks = Collection("images")
    for task in (images.lock, images.fetch, images.build, images.verify):
        image_tasks.add_task(task)
    for task in (images.save, images.load, images.unpack, images.push):
        image_tasks.add_task(task)
    image_tasks.add_task(images.list_, name="list")
    everything.add_collection(image_tasks)

    everything.add_task(map.map_, name="map")
    everything.add_task(tour.tour)
    everything.add_collection(measure.collection())
    everything.add_task(developer.run_tests, name="test")
    for task in (developer.lint, developer.bench, developer.hardware, doctor.doctor):
        everything.add_task(task)


def _only_quick_ones(words: list[str]) -> bool:
    """Whether the command line asks for nothing else; a check must feel instant."""
    return bool(words) and words[0] in _QUICK and all(map(_THEIR_WORDS.fullmatch, words[1:]))


namespace = _attendees()
# The others' modules take longer to import than the client of a check runs.
if not _only_quick_ones(sys.argv[1:]):
    _add_others(namespace)

__all__ = ["namespace"]
