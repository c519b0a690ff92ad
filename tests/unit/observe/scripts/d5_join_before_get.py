"""Hangs: joins a process whose result is larger than a pipe, before taking the result."""

import multiprocessing


def embed(results):
    results.put(bytes(500_000))


context = multiprocessing.get_context("fork")
results = context.Queue()
process = context.Process(target=embed, args=(results,))
print("START", flush=True)
process.start()
process.join()  # waits here
print("DONE", len(results.get()), flush=True)
