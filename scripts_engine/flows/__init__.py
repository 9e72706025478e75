"""Operations on scripts, hooks, runs and secrets."""
