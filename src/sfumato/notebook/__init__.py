"""How results show in a notebook: small tables, small pictures, a bar of progress, and frames of figures."""
