"""Where profiles come from; torch and transformers live in here alone."""
