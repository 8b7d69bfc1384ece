"""The profile: the one record that passes from a measurement to everything that reads it."""
