"""One module a format of a verification."""
