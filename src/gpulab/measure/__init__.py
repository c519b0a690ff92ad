"""The article's figures, measured on the machine at hand.

A measurement is a list of cases; each case is one attempt, watched from outside, of a script in
`scripts/`. What a measurement costs it says beforehand.
"""

from gpulab.measure.amp import Amp
from gpulab.measure.deadlock import Deadlock
from gpulab.measure.leak import Leak
from gpulab.measure.loader import Loader
from gpulab.measure.measurement import Column, Measurement, Row, in_words
from gpulab.measure.results import Results
from gpulab.measure.spawn import Spawn
from gpulab.measure.taking import Taking
from gpulab.measure.zero_grad import ZeroGrad

__all__ = [
    "Amp",
    "Column",
    "Deadlock",
    "Leak",
    "Loader",
    "Measurement",
    "Results",
    "Row",
    "Spawn",
    "Taking",
    "ZeroGrad",
    "in_words",
]
