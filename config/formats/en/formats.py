"""The format of times on pages: sortable, to the second, in UTC."""

DATETIME_FORMAT = "Y-m-d H:i:s"
