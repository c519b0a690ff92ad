"""What the rehearsal device has in common with a GPU, and what not: `python -m` this package.

The same parts run on a real GPU with `--device cuda`; what is not as expected there is a difference
between the rehearsal and the GPU.
"""
