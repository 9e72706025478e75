"""How often somebody may try, and where that is counted."""
