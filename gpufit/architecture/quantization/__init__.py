"""Quantised layouts: for every method the tensors that stand for a weight, told from its config alone.

One module a method. Pure, as the rest of `gpufit.architecture`.
"""
