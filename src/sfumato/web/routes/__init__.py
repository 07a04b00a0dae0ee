"""The HTTP interface: each route asks the worker pool or the queue of jobs, and returns the answer."""
