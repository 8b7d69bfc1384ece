"""Speed budgets and accuracy, measured: run by hand, not in the test suite."""
