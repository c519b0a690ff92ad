"""Marks the root of the golden catalogue, by which the grader itself is tested."""
