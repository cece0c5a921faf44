"""The doctor's command: its arguments, the thing they name, and its lists."""
