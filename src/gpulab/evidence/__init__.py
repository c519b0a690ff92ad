"""What hidden checks are written with: attempts to make, words to judge them by."""

from gpulab.attempts import Attempt, Ended
from gpulab.evidence.lab import Lab
from gpulab.evidence.report import fail, note, remark, undecided
from gpulab.evidence.require import require_answer, require_finished

__all__ = [
    "Attempt",
    "Ended",
    "Lab",
    "fail",
    "note",
    "remark",
    "require_answer",
    "require_finished",
    "undecided",
]
