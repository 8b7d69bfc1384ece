"""Thin widgets: they know their size and hand drawing to a renderable."""
