"""The labs: pictures that a reader moves, in Jupyter and on a page.

How a lab is made: two files of one name in this folder, and a cell. What the
labs share lies in ``machinery``.

1. ``name.py`` holds a class over `selfattn.labs.machinery.lab.Lab`. Its
   settings are traits from `selfattn.labs.machinery.settings`, each with its
   bounds. It computes the same numbers as the page with the package, for the
   tests and for cells below it; `figure` draws the still picture, `describe`
   says it in words.
2. ``name.js`` ends in a default export, ``defineLab`` of four things:
   ``compute(values)`` takes all settings and returns all numbers, from
   ``core.js`` alone: no page, no chance, no clock. The tests run it in Node
   against the package. ``build(lab)`` makes the controls and the picture from
   ``controls.js`` and ``pictures.js`` once, and returns
   ``update(values, result)``, which redraws them after every change.
   ``sees`` and ``tasks``, in ``name_insight.js``, say what there is to see
   now in a sentence, and what to try, each with its question and answer.
   Change settings with ``lab.set({ name: value })`` alone: bounds, other
   views, the kernel and the page's address follow from it.
3. The notebook's cell ends in the lab: ``DotProductLab()``.

Scripts share one scope once they are joined, so top-level names must differ
from those of the scripts they import; `selfattn.labs.machinery.esm` says so
otherwise.
"""
