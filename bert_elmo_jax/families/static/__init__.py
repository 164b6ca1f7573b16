"""Static word vectors: skip-gram and CBOW with negatives, GloVe, and fastText's n-grams."""
