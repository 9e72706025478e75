"""What every HTTP edge shares. Imports no app."""
