"""Where SQL runs: DuckDB, or Spark."""
