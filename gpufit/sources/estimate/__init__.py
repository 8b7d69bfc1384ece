"""A profile from arithmetic alone: config and file headers, shape rules and an engine's rules. No torch, no device."""
