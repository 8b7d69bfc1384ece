"""One module a family of models: `build(config)` turns its config into an `Architecture`."""
