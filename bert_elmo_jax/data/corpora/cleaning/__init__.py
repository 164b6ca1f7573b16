"""Steps between the files and the shards: quality filters, near-duplicates, mixtures."""
