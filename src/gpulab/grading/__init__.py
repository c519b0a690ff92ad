"""Verdicts: check runs, and the record of them."""

from gpulab.grading.check import Request, check, scratch_folder
from gpulab.grading.records import Records

__all__ = ["Records", "Request", "check", "scratch_folder"]
