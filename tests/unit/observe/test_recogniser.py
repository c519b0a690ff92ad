"""The rules of recognition on made-up looks, without any process."""

from types import SimpleNamespace

import pytest

from gpulab.observe import hang
from gpulab.observe.hang import Recogniser, Thread
from gpulab.observe.waits import UNKNOWN, Wait

LOCKED, POLLS, SLEEPS = Wait("private lock"), Wait("input", timed=True), Wait("timer", timed=True)
MAIN, WORKER, TRACKER = 1, 2, 3


class FakeTree:
    """A main process with a worker, as `Tree` shows them, and their threads."""

    def __init__(self):
        roles = {MAIN: "main", WORKER: "worker", TRACKER: "helper"}
        self.alive = {pid: SimpleNamespace(pid=pid, role=role) for pid, role in roles.items()}
        self.main = self.alive[MAIN]
        self.changes = 0
        self.cpu = 0.0
        self.threads = {pid: [Thread(pid, 0.0, wait)] for pid, wait in
                        ((MAIN, POLLS), (WORKER, LOCKED), (TRACKER, Wait("read", 3)))}  # fmt: skip

    def activity(self):
        return self.cpu

    def waiting_parent(self, _member):
        return self.alive.get(MAIN)

    def set(self, pid, *waits, cpu=0.0):
        self.threads[pid] = [Thread(pid + 100 * i, cpu, wait) for i, wait in enumerate(waits)]


@pytest.fixture
def tree(monkeypatch):
    monkeypatch.setattr(hang, "can_be_woken_by_signal", lambda _: False)
    return FakeTree()


def first_finding(tree, *, seconds=12.0, step=0.05, each=lambda _: 0):
    """The first finding and its time; `each` changes the tree and returns the output's size."""
    recogniser = Recogniser(tree, lambda pid: tree.threads[pid])
    at = 0.0
    while at < seconds:
        output = each(at) or 0
        finding = recogniser.look(at, output)
        if finding:
            return finding, at
        at += step
    return None, at


def test_a_locked_worker_is_proven_after_half_a_second(tree):
    finding, at = first_finding(tree)
    assert finding.kind == "proof"
    assert 0.5 <= at < 0.7
    assert [m.pid for m in finding.stuck + finding.parents] == [WORKER, MAIN]
    assert finding.gives_up


def test_a_parent_that_waits_for_ever_does_not_give_up(tree):
    tree.set(MAIN, Wait("child"))
    finding, _ = first_finding(tree)
    assert not finding.gives_up


def test_output_puts_a_proof_off(tree):
    finding, _ = first_finding(tree, each=lambda at: int(at * 4))
    assert finding is None


@pytest.mark.parametrize(
    "worker",
    [
        [LOCKED, None],  # a thread of it runs
        [LOCKED, SLEEPS],
        [LOCKED, Wait("private lock", timed=True)],
        [LOCKED, Wait("shared lock")],
        [LOCKED, Wait("read", 5)],
        [LOCKED, UNKNOWN],
    ],
)
def test_one_thread_that_may_go_on_prevents_a_proof(tree, worker):
    tree.set(WORKER, *worker)
    finding, _ = first_finding(tree, seconds=5)
    assert finding is None


@pytest.mark.parametrize("parent", [None, SLEEPS, UNKNOWN])
def test_a_worker_that_its_parent_does_not_wait_for_is_not_proven(tree, parent):
    tree.set(MAIN, parent)
    finding, _ = first_finding(tree)
    assert finding is None


def test_a_worker_that_ran_between_two_looks_is_not_proven(tree):
    def run_a_little(at):
        tree.threads[WORKER] = [Thread(WORKER, 0.0, LOCKED, runs=f"{at} 0 7")]

    finding, _ = first_finding(tree, seconds=5, each=run_a_little)
    assert finding is None


def test_a_parent_that_computes_between_two_looks_prevents_a_proof(tree):
    finding, _ = first_finding(tree, seconds=5, each=lambda at: tree.set(MAIN, POLLS, cpu=at / 5))
    assert finding is None


def test_a_process_that_a_signal_may_wake_is_left_to_stillness(tree, monkeypatch):
    monkeypatch.setattr(hang, "can_be_woken_by_signal", lambda _: True)
    finding, at = first_finding(tree)
    assert finding.kind == "stillness"
    assert 6 < at < 6.3
    assert {m.pid for m in finding.stuck} == {MAIN, WORKER}


def test_the_main_process_is_proven_only_when_it_has_no_child(tree):
    tree.set(MAIN, LOCKED, LOCKED)
    tree.set(WORKER, Wait("read", 3))
    assert first_finding(tree, seconds=5)[0] is None
    del tree.alive[WORKER]
    finding, _ = first_finding(tree)
    assert (finding.kind, [m.pid for m in finding.stuck]) == ("proof", [MAIN])


def test_a_doubted_proof_comes_again_only_after_another_half_second(tree):
    recogniser = Recogniser(tree, lambda pid: tree.threads[pid])
    looks = [step / 20 for step in range(60)]
    proofs = []
    for at in looks:
        if recogniser.look(at, 0):
            proofs.append(at)
            recogniser.doubt(at)
    assert 3 <= len(proofs) <= 5


@pytest.mark.parametrize(
    "sign",
    ["output", "change", "cpu", "runs", "sleeps", "unseen"],
)
def test_every_sign_of_life_puts_stillness_off(tree, sign):
    tree.set(WORKER, Wait("shared lock"))

    def live_until_5(at):
        if at > 5:
            tree.set(WORKER, Wait("shared lock"))
            return 5
        if sign == "change":
            tree.changes += 1
        if sign == "cpu":
            tree.cpu = at
        threads = {"runs": None, "sleeps": SLEEPS, "unseen": UNKNOWN}
        if sign in threads:
            tree.set(WORKER, Wait("shared lock"), threads[sign])
        return at if sign == "output" else 5

    finding, at = first_finding(tree, each=live_until_5)
    assert finding.kind == "stillness"
    assert 10.8 < at < 11.3
    assert finding.last_sign_of_life == pytest.approx(5, abs=0.2)


def test_the_cpu_time_of_the_loaders_polling_is_no_sign_of_life(tree):
    tree.set(WORKER, Wait("shared lock"))

    def poll(at):
        tree.cpu = 0.005 * (at // 5)

    finding, at = first_finding(tree, each=poll)
    assert finding.kind == "stillness"
    assert at < 6.3


def test_time_that_nobody_watched_does_not_count_as_still(tree):
    tree.set(WORKER, Wait("shared lock"))
    finding, at = first_finding(tree, seconds=60, step=5.0)
    assert finding is None or at > 50


def test_a_tree_that_has_ended_does_not_hang(tree):
    tree.alive.clear()
    assert first_finding(tree)[0] is None


def test_gpu_work_is_a_sign_of_life(tree):
    tree.set(WORKER, Wait("shared lock"))
    recogniser = Recogniser(tree, lambda pid: tree.threads[pid])
    assert not any(recogniser.look(step / 10, 0, gpu_busy=True) for step in range(200))
