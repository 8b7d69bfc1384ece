"""One module a verb, each with `prepare_parser` and `run`; the docstring's first line is the help text."""
