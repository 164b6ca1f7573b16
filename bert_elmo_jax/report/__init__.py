"""HTML pages, tables and figures from plain data. Knows no models."""
