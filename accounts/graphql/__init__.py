"""The accounts' part of the two GraphQL schemas.

``people`` is for /user/graphql, ``programs`` for /admin/graphql. The other apps' parts also use
``scope`` and ``enums``.
"""
