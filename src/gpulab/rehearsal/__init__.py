"""The rehearsal device: `cuda` scripts on a machine without a GPU. A teaching aid, not a GPU."""
