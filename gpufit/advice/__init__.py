"""From predictions to advice: verdicts, cards, lots. Pure."""
