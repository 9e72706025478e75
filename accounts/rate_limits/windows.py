"""Every rate limit, as data."""

from accounts.rate_limits.counters import Window

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

PIN_SENDS_OF_ADDRESS: tuple[Window, ...] = (
    Window(1, MINUTE),
    Window(5, HOUR),
    Window(10, DAY),
)
PIN_SENDS_OF_CLIENT = Window(20, 10 * MINUTE)
PIN_CHECKS_OF_CLIENT = Window(60, 5 * MINUTE)
LOGIN_FAILURES_OF_CLIENT = Window(30, 10 * MINUTE)
# Logins by device code that a client starts.
DEVICE_LOGINS_OF_CLIENT = Window(10, 10 * MINUTE)
# Counted before the code is looked up; a right code takes its hits back.
WRONG_USER_CODES_OF_PERSON = Window(5, 10 * MINUTE)
WRONG_USER_CODES_AT_CLIENT = Window(5, 10 * MINUTE)
# Counted before the password is hashed; a right password takes its hit back.
ADMIN_LOGIN_FAILURES_OF_CLIENT = Window(30, 10 * MINUTE)
ADMIN_LOGIN_FAILURES_AT_CLIENT = Window(5, 15 * MINUTE)
ADMIN_LOGIN_FAILURES_OF_USER = Window(20, HOUR)
ADMIN_LOGIN_FAILURES_OF_BROWSER = Window(5, 15 * MINUTE)
# Limits right passwords too, because each costs a hash.
ADMIN_LOGINS_OF_USER = Window(100, 10 * MINUTE)
PASSWORD_CHANGES_OF_PERSON = Window(20, HOUR)
# Calls of one hook whose signature is wrong.
FAILED_SIGNATURES_OF_CLIENT = Window(60, MINUTE)
MESSAGES_REFUSED_ON_RECORD = Window(1, DAY)
WRONG_CODES_ON_RECORD = Window(1, 15 * MINUTE)
# That one key follows what one of its subjects receives.
LISTENING_ON_RECORD = Window(1, 15 * MINUTE)
# Of one scope to one key.
REFUSED_SCOPES_ON_RECORD = Window(1, 15 * MINUTE)
SMS_OF_NUMBER = Window(5, DAY)
TEST_MESSAGES_OF_PERSON = Window(20, HOUR)
INVITATIONS_OF_ORGANISATION = Window(20, HOUR)
INVITATIONS_TO_ADDRESS_OF_ORGANISATION = Window(3, DAY)
INVITATIONS_TO_ADDRESS = Window(10, DAY)
# Requests for a link that sets a new password, for known and unknown addresses alike.
PASSWORD_LINKS_OF_CLIENT = Window(20, 10 * MINUTE)
PASSWORD_LINKS_TO_ADDRESS: tuple[Window, ...] = (
    Window(3, HOUR),
    Window(10, DAY),
)
# Of scripts that are not saved; what they call on the internet is on no record.
UNRECORDED_RUNS_OF_PERSON = Window(100, 10 * MINUTE)
TEST_MESSAGES_TO_ADDRESS = Window(10, DAY)
# Of e-mail or phone; each sends a mail to the former address.
LOGIN_CHANGES_OF_USER = Window(10, DAY)
KEY_WARNINGS_TO_ADDRESS = Window(10, DAY)
FAILURE_MAILS_TO_ADDRESS = Window(20, HOUR)
# About one subject, of one kind.
ALERTS_OF_SUBJECT = Window(1, 15 * MINUTE)
# Answers that reveal whether an address has an account.
ADDRESS_REFUSALS_OF_ORGANISATION = Window(30, HOUR)


def a_minute(amount: int) -> Window:
    return Window(amount, MINUTE)


def a_day(amount: int) -> Window:
    return Window(amount, DAY)
