"""HTTP: reading requests, problem documents, concurrency limits and middleware."""
