"""Messages to users, by e-mail and SMS, within quotas."""
