"""OAuth 2.0 device authorization (RFC 8628): a person logs a program in, in the admin."""
