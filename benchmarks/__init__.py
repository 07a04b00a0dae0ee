"""Speed, measured: ratios and CPU seconds taken in one run, printed as tables. `python -m benchmarks [NAME …]`."""
