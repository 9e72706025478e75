"""A document like that of GET /session, for those who have no sessions."""

SESSION = {
    "id": "01938c5e-7a40-7c11-9d2e-5b8f6a3e7c10",
    "status": "active",
    "credential": "Token",
    "longLived": True,
    "organisation": {"id": "6b1d3f0a-52c8-4e97-8f34-c7d9e0a1b2c3", "name": "Organisation 1"},
    "user": {
        "id": "e2a4c6d8-1b3f-4d57-a9c1-3e5f7a9b1d2c",
        "email": "alice@example.com",
        "name": "Alice",
    },
    "device": {"id": "90f1e2d3-c4b5-4a69-8778-695a4b3c2d1e", "label": "phone"},
    "createdAt": "2026-11-20T12:00:00Z",
    "expiresAt": "2027-02-18T12:00:00Z",
    "lastUsedAt": "2026-11-20T12:00:00Z",
}
