"""The rehearsal device: scripts written for `cuda` on a machine without a GPU. A teaching aid, not a GPU."""
