from invoke import Context

from gpulab.tasks.command import command


def test(_: Context):
    """X"""


def lint(_: Context):
    """X"""


def bench(_: Context):
    """X"""


def hardware(_: Context):
    """X"""


test, lint, bench, hardware = map(command, (test, lint, bench, hardware))
