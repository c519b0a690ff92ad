"""The page tells of every attack, and what it can do."""

import table
from attack_list import BODIES, attacks


def test_the_page_is_current() -> None:
    assert table.current() == table.table(), "write it: python tests/red_team/table.py --write"


def test_every_attack_has_a_body_and_every_body_an_attack() -> None:
    known = attacks()
    bodies = {path.stem for path in BODIES.iterdir() if path.name != "__pycache__"}
    assert bodies - known.keys() == set()
    assert {name for name, attack in known.items() if not attack.body} - bodies == set()
    assert {name for name, attack in known.items() if attack.body} & bodies == set()
