"""A server for one model: predictions, vectors and rankings over HTTP (the extra `serve`)."""
