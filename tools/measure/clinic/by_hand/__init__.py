"""What sound styles compute, written out by hand: see `tests/clinic`."""
