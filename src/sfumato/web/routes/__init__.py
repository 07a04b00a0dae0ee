"""The HTTP interface: each route asks a desk or the jobs, and says what it got."""
