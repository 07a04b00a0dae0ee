"""Files with labels and spreadsheets: read as Parquet of our own with a codebook beside, and written back."""
