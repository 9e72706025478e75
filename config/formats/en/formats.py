"""How pages write times: sortable, to the second. The time zone is UTC throughout."""

DATETIME_FORMAT = "Y-m-d H:i:s"
