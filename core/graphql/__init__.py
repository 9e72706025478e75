"""GraphQL over HTTP, with limits on documents, answers and time.

A request passes these modules in order, each of which may end it with a ``Refused`` reply:

1. ``view`` checks the method and ``Accept`` (``media_type``), authenticates the request, takes a
   place in the bulkhead and calls the steps below.
2. ``request`` reads the body into a ``GraphQLRequest``.
3. ``document`` parses and validates the text, within ``document_limits``, and selects the
   operation.
4. ``variables`` checks the variables' values.
5. ``document_cost`` estimates the cost of the operation.
6. ``execution`` executes it within limits on the answer and on time.
7. ``reply`` makes the HTTP response of the result; ``errors`` words its errors.

Resolvers use ``problem``, ``resolving`` and ``connection``.
"""
