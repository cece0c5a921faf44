"""One colour for each role, the same in figures, labs and text.

From the palette of Okabe and Ito (2008), which readers with any common form
of colour blindness can tell apart.
"""

Q = "#0072B2"  # queries: blue
K = "#D55E00"  # keys: vermillion
V = "#009E73"  # values: bluish green
OUTPUT = "#000000"  # what comes out
NEUTRAL = "#6E6E6E"  # grid lines, bounds, what is only there to compare
