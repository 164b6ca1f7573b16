"""Studies of the layers of encoders: probes, senses, neighbours, attention."""
