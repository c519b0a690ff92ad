"""The grader as a service: a Unix socket per seat, a fair queue, records on its side."""
