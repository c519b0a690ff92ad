"""The operator bridge: CUDA operators, computed by CPU kernels on the runtime stub's memory.

It runs inside attempts, beside torch alone. Nothing here imports `gpulab`; Python 3.9 syntax.
"""
