# ruff: noqa: INP001 - a settings file, no package
"""Jupyter on a seat; its token comes as JUPYTER_TOKEN, its path as GPULAB_BASE_URL."""

import os

c = get_config()  # noqa: F821 - Jupyter defines it
c.ServerApp.ip = "0.0.0.0"  # noqa: S104 - the seat's own network; the container's port decides
c.ServerApp.port = 8888
c.ServerApp.port_retries = 0
c.ServerApp.base_url = os.environ.get("GPULAB_BASE_URL", "/")
c.ServerApp.root_dir = os.environ["HOME"]
c.ServerApp.open_browser = False
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.news_url = None
