"""The workbench: one page in the browser, and the HTTP interface behind it.

The server imports no kernels and reads no table. A worker pool answers quick questions. Each search and each
release is a job in a process of its own. Both run `worker`, which calls the functions of `api/`.
"""
