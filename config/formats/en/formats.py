"""The format of times on pages: sortable, to the second, with the name of the time zone."""

DATETIME_FORMAT = "Y-m-d H:i:s T"
