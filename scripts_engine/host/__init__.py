"""What a script may ask its parent process for: one file a capability."""
