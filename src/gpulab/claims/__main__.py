"""Write docs/claims.md: `python -m gpulab.claims`."""

from gpulab.catalogue import find_root
from gpulab.claims.page import page

root = find_root()
(root / "docs" / "claims.md").write_text(page(root), encoding="utf-8")
