"""Tables: files, databases, frames and the engines that run SQL; their columns, roles, labels and profiles."""
