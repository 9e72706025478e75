"""Messages to people: by e-mail and by SMS, within quotas."""
