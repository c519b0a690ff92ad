"""Hidden checks. UNFINISHED."""

import numpy as np

from gpulab.evidence import Lab, fail, require_answer


def test_values(lab: Lab) -> None:
    """The values are what the brief promises."""
    values = lab.rng.normal(size=4)
    answer = require_answer(lab.call("predict", values))
    if not np.allclose(answer, 2 * values):
        fail("wrong_values", got=float(answer[0]), wanted=float(2 * values[0]))
