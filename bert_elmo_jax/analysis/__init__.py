"""What the layers of encoders hold: probes, senses, neighbours, attention, and the pages that show them."""
