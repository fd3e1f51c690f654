"""How long users of the panel wait, in a real Chromium on a real JupyterLab; ``figures.py`` has all of it."""
