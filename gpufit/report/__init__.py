"""One document, many formats: everything gpufit answers is built here once and rendered by one module a format."""
