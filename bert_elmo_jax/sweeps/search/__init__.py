"""A search: runs of a program whose fields are drawn from ranges, by chance or by what earlier runs came to."""
