"""AWD-LSTM."""
