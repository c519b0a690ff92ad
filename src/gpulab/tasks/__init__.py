"""The invoke commands, one module a namespace."""

from invoke import Collection

from gpulab.tasks import attendee, author, checking, developer, doctor, images

namespace = Collection()
for task in (attendee.show, attendee.run, attendee.hint, attendee.reset, attendee.pack):
    namespace.add_task(task)
namespace.add_task(attendee.list_, name="list")

_check = Collection("check")
_check.add_task(checking.check, name="one", default=True)
_check.add_task(checking.check_all, name="all")
namespace.add_collection(_check)

_exercise = Collection("exercise")
_exercise.add_task(author.new)
_exercise.add_task(author.verify)
namespace.add_collection(_exercise)

_images = Collection("images")
for task in (images.lock, images.fetch, images.build, images.verify):
    _images.add_task(task)
for task in (images.save, images.load, images.unpack, images.push):
    _images.add_task(task)
_images.add_task(images.list_, name="list")
namespace.add_collection(_images)

for task in (
    developer.test,
    developer.lint,
    developer.bench,
    developer.hardware,
    doctor.doctor,
):
    namespace.add_task(task)

__all__ = ["namespace"]
