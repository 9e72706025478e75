"""Senders' own libraries sign; a call with one byte changed is refused."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import stripe
from slack_sdk.signature import SignatureVerifier
from standardwebhooks import Webhook
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator

from hooks.senders import Call, Refusal, RefusalReason, Rules, Verified, examine
from tests.hooks.senders.signed import NOW, URL, call

WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MOMENT = datetime.fromtimestamp(NOW, UTC)
JSON = '{"id": "evt_1", "event_id": "Ev1"}'
FORM = "MessageSid=SM1&Body=caf%C3%A9+noir&Body=again&Empty="
FORM_FIELDS = {"MessageSid": "SM1", "Body": "café noir", "Empty": ""}


def by_standard_webhooks() -> Call:
    return call(
        JSON.encode(),
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", str(NOW)),
        ("webhook-signature", Webhook(WHSEC).sign("msg_1", MOMENT, JSON)),
    )


def by_svix() -> Call:
    return call(
        JSON.encode(),
        ("svix-id", "msg_1"),
        ("svix-timestamp", str(NOW)),
        ("svix-signature", SvixWebhook(WHSEC).sign("msg_1", MOMENT, JSON)),
    )


def by_stripe() -> Call:
    header = stripe.WebhookSignature.generate_signature_header(JSON, WHSEC, timestamp=NOW)
    return call(JSON.encode(), ("Stripe-Signature", header))


def by_slack() -> Call:
    signature = SignatureVerifier(WHSEC).generate_signature(timestamp=str(NOW), body=JSON)
    assert signature is not None
    return call(
        JSON.encode(),
        ("X-Slack-Request-Timestamp", str(NOW)),
        ("X-Slack-Signature", signature),
    )


def by_twilio() -> Call:
    signature = RequestValidator(WHSEC).compute_signature(URL, FORM_FIELDS)
    return call(
        FORM.replace("&Body=again", "").encode(),
        ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),
        ("X-Twilio-Signature", signature),
    )


def by_twilio_with_a_shared_key() -> Call:
    signature = RequestValidator(WHSEC).compute_signature(URL, FORM_FIELDS, "HMAC_SHA256")
    return call(
        FORM.replace("&Body=again", "").encode(),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("X-Twilio-Webhooks-Signature-Settings", "key=sharedkey_1,algorithm=HMAC_SHA256"),
        ("X-Twilio-Signature", signature),
    )


def by_twilio_with_json() -> Call:
    validator = RequestValidator(WHSEC)
    url = f"{URL}?bodySHA256={validator.compute_hash(JSON)}"
    return call(
        JSON.encode(),
        ("Content-Type", "application/json"),
        ("X-Twilio-Signature", validator.compute_signature(url, {})),
        url=url,
    )


SIGNERS = pytest.mark.parametrize(
    ("sign", "sender", "event_id"),
    [
        (by_standard_webhooks, "standard-webhooks", "msg_1"),
        (by_standard_webhooks, "gitlab", "msg_1"),
        (by_svix, "svix", "msg_1"),
        (by_standard_webhooks, "svix", "msg_1"),
        (by_stripe, "stripe", "evt_1"),
        (by_slack, "slack", "Ev1"),
        (by_twilio, "twilio", None),
        (by_twilio_with_a_shared_key, "twilio", None),
        (by_twilio_with_json, "twilio", None),
    ],
)


@SIGNERS
def test_what_a_library_signs_is_accepted(
    sign: Callable[[], Call], sender: str, event_id: str | None
) -> None:
    outcome = examine(Rules(sender), [WHSEC], sign(), now=NOW)

    assert outcome == Verified(event_id, 0, "signed")


@SIGNERS
def test_one_changed_byte_is_refused(
    sign: Callable[[], Call], sender: str, event_id: str | None
) -> None:
    signed = sign()
    tampered = replace(signed, body=signed.body.replace(b"1", b"2", 1))

    outcome = examine(Rules(sender), [WHSEC], tampered, now=NOW)

    assert isinstance(outcome, Refusal)
    assert outcome.reason is RefusalReason.SIGNATURE_MISMATCH


@SIGNERS
def test_another_secret_is_refused(
    sign: Callable[[], Call], sender: str, event_id: str | None
) -> None:
    outcome = examine(Rules(sender), [WHSEC.swapcase()[::-1][:32] + "AAAA"], sign(), now=NOW)

    assert isinstance(outcome, Refusal)
    assert outcome.reason is RefusalReason.SIGNATURE_MISMATCH
