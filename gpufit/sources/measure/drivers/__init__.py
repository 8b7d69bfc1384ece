"""How each kind of model is driven through its phases, the way its users would: one module a kind."""
