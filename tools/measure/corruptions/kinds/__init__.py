"""The kinds of corruption, a module each; all are found by being here."""
