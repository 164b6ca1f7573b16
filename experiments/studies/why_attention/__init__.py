"""Small studies of the choices in attention: scaling, heads, length, crosstalk, warm-up, and words that heads link."""
