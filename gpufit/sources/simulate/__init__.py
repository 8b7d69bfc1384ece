"""The same run as measured, on fake tensors: sizes without memory, a card or weights."""
