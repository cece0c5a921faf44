"""What the labs share, in pairs too: a side for Python, one for the page.

- ``lab.py`` and ``controls.js``: what a lab is, and its sliders and choices;
- ``settings.py`` and ``settings.js``: its settings, their bounds, its links;
- ``park_miller.py`` and ``core.js``: the arithmetic of attention for the page;
- ``drawing.js``, ``pictures.js``, ``shades.js``, ``lab.css``: elements and
  texts, planes, tables, colours;
- ``esm.py``: joins a lab's scripts into the one module that a page runs.
"""
