"""What a model is made of, told from its config alone: the shapes of its weights, what each layer caches, its widths.

Pure: a config as it was read goes in, an `Architecture` comes out. No file is opened here and no torch imported.
"""
