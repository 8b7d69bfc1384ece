"""What serving engines allocate: one module or package an engine, every rule with its source and its versions.

A number here is never "the model's": it holds for model + engine + version + precision + card.
"""
