"""The terminal interface: every catalog card against a profile, followed key by key.

Only this package imports Textual.
"""
