"""GraphQL over HTTP, with limits on documents, answers and time.

A request passes these modules in order, each of which may end it with a ``RefusedRequest`` reply:

1. ``view`` checks the method and ``Accept``, authenticates the request, takes a
   place in the bulkhead and calls the steps below.
2. ``request`` reads the body into a ``GraphQLRequest``.
3. ``document`` parses and validates the text, within ``document_limits``, and selects the
   operation.
4. ``document`` also checks the values of the variables.
5. ``document_cost`` estimates the cost of the operation.
6. ``execution`` executes it within limits on the answer and on time.
7. ``reply`` makes the HTTP response of the result, in the negotiated media type; ``problem`` words
   its errors.

Resolvers use ``problem``, ``resolving`` and ``connection``.
"""
