"""What goes wrong in mechanisms that save work."""
