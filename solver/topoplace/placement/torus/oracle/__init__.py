"""The engine's oracle for prisms: at given prices, the best candidates of every request."""
