"""Whether this process can do its work, and if not, why: in words that name no secret."""
