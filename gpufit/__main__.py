"""`python -m gpufit`."""

from gpufit.cli.main import run

run()
