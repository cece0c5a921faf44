"""Building: write the outputs of the notebooks, and make the site."""
