"""Opening, using and ending sessions, one file each."""
