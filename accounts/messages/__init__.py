"""How a PIN reaches its user."""
