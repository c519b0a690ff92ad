"""Asks the script for its answers."""


def ask(script, path):
    """The answers to the values in a file."""
    return script.answers(path)
