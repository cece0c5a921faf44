"""What must hold for everything a reader sees, as functions.

Each guard takes a notebook, a text or a folder and returns what is wrong with
it, one sentence a finding; an empty list means nothing is.
"""

from guards import cells, headings, prose

ON_A_NOTEBOOK = (
    cells.not_executed,
    cells.unexpected_errors,
    cells.machine_traces,
    cells.holes,
    cells.folded_away,
    cells.badly_written,
    cells.hidden_without_need,
    cells.undescribed_figures,
    cells.told_too_soon,
    cells.stored_modules,
    cells.odd_metadata,
    prose.unheld_numbers,
    prose.dead_markup,
    headings.far_numbers,
)
