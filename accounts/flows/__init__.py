"""What happens to accounts, one subject per file. Nothing here knows HTTP, GraphQL or the admin.

The life of a PIN: ``request_pin`` queues it, ``send_pin`` (in the background) makes and sends it,
``check_pin`` exchanges it for a device's credential.
"""
