"""One module a format of a comparison."""
