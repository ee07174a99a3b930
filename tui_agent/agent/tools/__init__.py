"""The tools offered to the model: few, flat, in a stable order."""
