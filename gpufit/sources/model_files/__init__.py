"""What a model's files say by themselves: formats, dtypes, sizes. Reads headers only, never loads torch."""
