"""This app's part of the two schemas, and what the other apps' parts are built with.

``people`` is for /user/graphql, ``programs`` for /admin/graphql.
"""
