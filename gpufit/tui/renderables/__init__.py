"""What the screens show, as text: pure functions of the fit document and a width, tested as strings."""
