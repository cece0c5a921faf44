"""Tables of sines and cosines."""
