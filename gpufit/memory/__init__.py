"""From samples to predictions: replaying memory events, fitting growth, carrying it to another card. Pure."""
