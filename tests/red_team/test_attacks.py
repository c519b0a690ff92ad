"""No attack forges a verdict, reads what is hidden or harms the machine at the level `isolated`."""

import pytest
from arena import Arena, Outcome
from attack_list import Attack, Ending, Local, attacks

ATTACKS = attacks()
each = pytest.mark.parametrize("name", ATTACKS)


@each
def test_isolated(name: str, isolated: Arena) -> None:
    attack = ATTACKS[name]
    outcome = isolated.fight(name, attack)
    print(outcome)
    assert outcome.ending in attack.isolated, outcome.told
    assert outcome.leaked == set()
    assert outcome.harm == []


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.right])
@pytest.mark.full
def test_right_work_stays_right(name: str, isolated: Arena) -> None:
    outcome = isolated.fight(name, ATTACKS[name], right=True)
    print(outcome)
    assert outcome.ending in ATTACKS[name].right, outcome.told
    assert outcome.leaked - {"solution"} == set()  # that it knows by right
    assert outcome.harm == []


@pytest.mark.parametrize(
    "name", [name for name, attack in ATTACKS.items() if attack.local is not Local.NOT_RUN]
)
@pytest.mark.full
def test_local(name: str, local: Arena) -> None:
    """The table says honestly what this level cannot stop."""
    outcome = local.fight(name, ATTACKS[name])
    print(outcome)
    if '"no_rehearsal"' in outcome.told:
        pytest.skip("there is nothing here that would stand in for a GPU")
    assert seen(outcome) is ATTACKS[name].local, outcome


def seen(outcome: Outcome) -> Local:
    """What an attack did, the worst of it."""
    if outcome.ending is Ending.FIXED:
        return Local.FORGES
    if outcome.leaked:
        return Local.READS
    return Local.HARMS if outcome.harm else Local.STOPPED


def test_what_wins_says_why() -> None:
    def odd(attack: Attack) -> bool:
        wins = Ending.FIXED in attack.isolated or attack.local is Local.NOT_RUN
        return wins != bool(attack.since)

    assert [name for name, attack in ATTACKS.items() if odd(attack)] == []
