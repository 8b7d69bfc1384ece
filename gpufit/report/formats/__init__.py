"""One module a format; each renders the same documents."""
