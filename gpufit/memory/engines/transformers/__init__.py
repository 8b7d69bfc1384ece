"""Hugging Face transformers, run by `generate()`: its forward pass told by arithmetic, release by release."""
