"""One module a format of a check."""
