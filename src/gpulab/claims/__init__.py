"""What the article says about PyTorch, claim by claim: verdict, what happens, what is taught.

Each claim is a record in one of the TOML files beside this one; its proofs are the tests under
`tests/claims/` that carry its number.
"""

from gpulab.claims.confirm import Confirmed, confirm
from gpulab.claims.records import Claim, Proof, Subject, Truth, load, load_all, proofs

__all__ = [
    "Claim",
    "Confirmed",
    "Proof",
    "Subject",
    "Truth",
    "confirm",
    "load",
    "load_all",
    "proofs",
]
