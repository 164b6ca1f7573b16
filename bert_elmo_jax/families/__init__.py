"""Model families: one folder each with its configuration, module, weight maps, objectives and encoder."""
