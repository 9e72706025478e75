"""What tests of senders and of limits ask for."""

SET_SENDER = """mutation($hook: ID!, $sender: String, $hmac: HmacInput) {
    setSender(hook: $hook, sender: $sender, hmac: $hmac) {
        sender methods idempotency toleranceSeconds verifyToken signingSecrets { id }
        hmac { header algorithm encoding prefix template timestampHeader idHeader secretEncoding }
    } }"""
LIMITS = """sender signedUrl toleranceSeconds allowedNetworks methods maxBodyBytes idempotency
    idempotencyWindowSeconds eventIdPointers callsPerMinute burst maxConcurrentRuns
    replyMode acceptedStatus maxAttempts"""
