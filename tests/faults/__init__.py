"""What fails, and what comes of it: exactly one outcome, whatever it is."""
