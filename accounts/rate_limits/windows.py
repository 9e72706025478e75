"""Every rate limit, as data."""

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerHour, RateLimitItemPerMinute

PIN_SENDS_OF_ADDRESS: tuple[RateLimitItem, ...] = (
    RateLimitItemPerMinute(1),
    RateLimitItemPerHour(5),
    RateLimitItemPerDay(10),
)
PIN_SENDS_OF_CLIENT = RateLimitItemPerMinute(20, 10)
PIN_CHECKS_OF_CLIENT = RateLimitItemPerMinute(60, 5)
LOGIN_FAILURES_OF_CLIENT = RateLimitItemPerMinute(30, 10)
# Counted before the password is hashed; a right password takes its hit back.
ADMIN_LOGIN_FAILURES_OF_CLIENT = RateLimitItemPerMinute(30, 10)
ADMIN_LOGIN_FAILURES_AT_CLIENT = RateLimitItemPerMinute(5, 15)
ADMIN_LOGIN_FAILURES_OF_USER = RateLimitItemPerHour(20)
ADMIN_LOGIN_FAILURES_OF_BROWSER = RateLimitItemPerMinute(5, 15)
# Limits right passwords too, because each costs a hash.
ADMIN_LOGINS_OF_USER = RateLimitItemPerMinute(100, 10)
PASSWORD_CHANGES_OF_PERSON = RateLimitItemPerHour(20)
# Calls of one hook whose signature is wrong.
FAILED_SIGNATURES_OF_CLIENT = RateLimitItemPerMinute(60)
MESSAGES_REFUSED_ON_RECORD = RateLimitItemPerDay(1)
WRONG_CODES_ON_RECORD = RateLimitItemPerMinute(1, 15)
SMS_OF_NUMBER = RateLimitItemPerDay(5)
TEST_MESSAGES_OF_PERSON = RateLimitItemPerHour(20)
INVITATIONS_OF_ORGANISATION = RateLimitItemPerHour(20)
INVITATIONS_TO_ADDRESS_OF_ORGANISATION = RateLimitItemPerDay(3)
INVITATIONS_TO_ADDRESS = RateLimitItemPerDay(10)
# Requests for a link that sets a new password, for known and unknown addresses alike.
PASSWORD_LINKS_OF_CLIENT = RateLimitItemPerMinute(20, 10)
PASSWORD_LINKS_TO_ADDRESS: tuple[RateLimitItem, ...] = (
    RateLimitItemPerHour(3),
    RateLimitItemPerDay(10),
)
# Of scripts that are not saved; what they call on the internet is on no record.
UNRECORDED_RUNS_OF_PERSON = RateLimitItemPerMinute(100, 10)
TEST_MESSAGES_TO_ADDRESS = RateLimitItemPerDay(10)
# Of e-mail or phone; each sends a mail to the former address.
LOGIN_CHANGES_OF_USER = RateLimitItemPerDay(10)
KEY_WARNINGS_TO_ADDRESS = RateLimitItemPerDay(10)
FAILURE_MAILS_TO_ADDRESS = RateLimitItemPerHour(20)
# Answers that reveal whether an address has an account.
ADDRESS_REFUSALS_OF_ORGANISATION = RateLimitItemPerHour(30)


def saves_a_minute(per_minute: int) -> RateLimitItem:
    return RateLimitItemPerMinute(per_minute)


def users_a_day(per_day: int) -> RateLimitItem:
    return RateLimitItemPerDay(per_day)


def messages_a_day(per_day: int) -> RateLimitItem:
    return RateLimitItemPerDay(per_day)
