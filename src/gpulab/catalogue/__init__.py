"""The exercises and their checks, read from their folders."""

from gpulab.catalogue.checks import CheckFile, Solution, WrongFix, load_checks
from gpulab.catalogue.exercises import Catalogue, Exercise, Layer, Needs, Primitive, find_root

__all__ = [
    "Catalogue",
    "CheckFile",
    "Exercise",
    "Layer",
    "Needs",
    "Primitive",
    "Solution",
    "WrongFix",
    "find_root",
    "load_checks",
]
