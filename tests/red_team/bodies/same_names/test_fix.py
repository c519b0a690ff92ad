def test_script_ends():
    """The script runs to its end."""


def test_saves():
    """It saves an answer to every value."""


def test_answers():
    """It answers as the solution does."""
