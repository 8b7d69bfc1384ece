"""gpufit: which GPU card, how many and for how long, answered from a measured run of the model."""

__version__ = "0.1.0"
