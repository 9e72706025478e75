"""What every HTTP edge shares."""
