"""The screens: the cards, the help over them, and what stands there when no profile is found."""
