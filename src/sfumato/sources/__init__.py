"""Tables where they are: files, databases, their columns and cells, and the engines that run SQL."""
