"""One module a format of a document with tables."""
