"""Measures of disclosure and loss, the kernels that feed them and the oracle they are checked against."""
