"""One module a format of an order; each renders the same documents."""
