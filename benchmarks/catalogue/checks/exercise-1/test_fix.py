"""The check whose cost is measured."""

import numpy as np

from gpulab.evidence import Lab, fail, require_answer


def test_mean(lab: Lab) -> None:
    """The mean is the mean."""
    values = lab.rng.normal(size=100)
    answer = require_answer(lab.call("mean", values))
    if not np.allclose(answer, values.mean()):
        fail("wrong", got=float(answer))
