"""RoBERTa and its variants, XLM-R and CamemBERT."""
