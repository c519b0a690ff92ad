"""This machine against a stack: what was found, and what to do about it."""

from gpulab.doctor.facts import Facts, look
from gpulab.doctor.machine import Live, Machine
from gpulab.doctor.rules import Finding, State, examine

__all__ = ["Facts", "Finding", "Live", "Machine", "State", "examine", "look"]
