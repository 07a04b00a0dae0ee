"""A release: rows recoded, written, read back and measured; its reports, its manifest, its checks afterwards."""
