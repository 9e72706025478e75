"""The ground floor: what any service of this kind would need. Imports nothing of the project."""
