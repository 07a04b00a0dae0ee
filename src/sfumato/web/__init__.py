"""The workbench: one page in the browser, and the HTTP interface behind it.

The server imports no kernels and reads no table. Quick questions go to a desk (`desk`, a warm worker process), searches
and releases are jobs (`jobs`, a process each); both run `worker`, which calls the functions of `calls/`.
"""
