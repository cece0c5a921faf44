"""What goes wrong in layers of attention."""
