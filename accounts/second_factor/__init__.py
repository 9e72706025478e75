"""The second factor of staff: an authenticator app (TOTP), and recovery codes for its loss."""
