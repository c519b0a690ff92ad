"""Fifty seats check at once against one service."""

import threading
import time

import psutil
import pytest

SEATS = 50
EAGER = 5  # seats that ask three times
KINDS = {  # what is sent: verdict, and the failed check's rationale
    "multiply": ("fixed", None),
    "wrong_for_empty": ("not-fixed", "not_empty"),
    "raises": ("not-fixed", "exception"),
    "dies": ("not-fixed", "silent"),
    "no_function": ("not-fixed", "exception"),
    "answers_twice": ("not-fixed", "broken_answer"),
    "answers_nonsense": ("not-fixed", "broken_answer"),
    "exits_in_run": ("not-fixed", "crash"),
}
SERVICE_MIB = 100
SHARE_MIB = 200  # the grading process that judges and the one that waits, attempts left out


class Meter(threading.Thread):
    """Peak of what the grader's own processes hold, in bytes."""

    def __init__(self, service: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.service, self.peak_service, self.peak_all = service, 0, 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.25):
            try:
                mine = self.service.memory_full_info().uss
                judges = sum(judge.memory_full_info().uss for judge in self.service.children())
            except psutil.Error:
                continue
            self.peak_service = max(self.peak_service, mine)
            self.peak_all = max(self.peak_all, mine + judges)


@pytest.mark.timeout(900)
def test_fifty_seats_at_once(idle) -> None:
    idle.seats = {f"seat-{number:02d}": "cpu" for number in range(SEATS)}
    service = idle.start()
    answers: list[tuple[str, str, int, dict]] = []
    start = threading.Barrier(SEATS + 2 * EAGER + 1)

    def ask(seat: str, kind: str, number: int) -> None:
        body = service.request(service.variant(kind) + f"\n# {seat}\n")
        start.wait()
        # A seat's later requests come once its first are in, as from a second terminal.
        service.wait_for(lambda: len(service.logged("check asked")) >= SEATS * (number > 0))
        last = service.client(seat).check(body, lambda _: None)
        answers.append((seat, kind, number, last))

    kinds = list(KINDS)
    todo = [(seat, kinds[i % len(kinds)], 0) for i, seat in enumerate(service.seats)]
    todo += [(seat, kind, n) for seat, kind, _ in todo[:EAGER] for n in (1, 2)]
    threads = [threading.Thread(target=ask, args=each) for each in todo]
    meter = Meter(service.process)
    meter.start()
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    start.wait()
    for thread in threads:
        thread.join(600)
    meter.done.set()

    assert len(answers) == len(todo)
    for seat, kind, _, last in answers:
        grade = last["grade"]
        failed = [c["rationale"]["key"] for c in grade["checks"] if c["outcome"] == "failed"]
        found = (grade["verdict"], next(iter(failed), None))
        assert found == KINDS[kind], (seat, kind, grade["reason"], accounts(service))
    for seat, count in service_counts(service).items():
        assert count == sum(seat == each for each, _, _ in todo)
    submissions = {grade["submission"] for _, _, _, last in answers for grade in [last["grade"]]}
    assert len(submissions) == SEATS  # everyone got the verdict on their own files

    order = [number for _, _, number, _ in answers]
    assert order[:SEATS].count(0) >= SEATS - 1  # all first checks come first, the one before ours
    mib = (meter.peak_service >> 20, meter.peak_all >> 20)
    rate = 60 * len(todo) / (time.monotonic() - begun)
    print(f"service {mib[0]} MiB, grader {mib[1]} MiB, {rate:.0f} checks a minute")
    assert mib[0] < SERVICE_MIB
    assert mib[1] < SERVICE_MIB + SHARE_MIB


def service_counts(service) -> dict[str, int]:
    return {seat: len(service.client(seat).get("/grades")) for seat in service.seats}


def accounts(service) -> list[str]:
    return [path.read_text()[-2000:] for path in (service.state / "crashes").glob("*")]
