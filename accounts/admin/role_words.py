"""What roles open, in words, for forms."""

ROLE_HELP = (
    "Members can log in with a PIN but cannot use this admin. Viewers see scripts, hooks and runs "
    "in outline; Operators also payloads and logs, run scripts and steer the queue; Authors also "
    "write scripts, hooks and secrets; Administrators do everything. All but Members need “Staff”."
)
