"""What is compared: a suite is a context in which its targets answer, and yields them."""
