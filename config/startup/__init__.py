"""What has to be there before a node serves."""
