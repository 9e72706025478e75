"""All settings, read from the environment; docs/configuration.md explains each variable."""

import os
import re
from datetime import timedelta
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from config.environment import (
    DEVELOPMENT,
    PRODUCTION,
    choice,
    data_directory,
    database,
    email,
    env,
    integer,
    integers,
    metrics_networks,
    networks,
    public_url,
    required_in_production,
    switch,
    usable_cores,
    usable_memory_bytes,
)
from config.secret_keys import KEY_HINT, peppers, require_strength, secret_key

# --- Environment -------------------------------------------------------------------------------

BASE_DIR = Path(__file__).resolve().parent.parent
MOONHOOK_ENV = choice("MOONHOOK_ENV", DEVELOPMENT, (DEVELOPMENT, PRODUCTION))
IS_PRODUCTION = MOONHOOK_ENV == PRODUCTION
DATA_DIR = data_directory(Path(env.str("MOONHOOK_DATA_DIR", default=str(BASE_DIR / "var"))))
DEBUG = False  # Never serve a traceback; in development too, errors are in the log.

# --- Secrets -----------------------------------------------------------------------------------

SECRET_KEY = secret_key(MOONHOOK_ENV, DATA_DIR)
PEPPERS = peppers(MOONHOOK_ENV, DATA_DIR)  # Version -> key, newest first.

# --- Addresses ---------------------------------------------------------------------------------

BIND = env.str("BIND", default="127.0.0.1")
PORT = integer("PORT", 8000, minimum=1)
_public = public_url(MOONHOOK_ENV, PORT)
PUBLIC_URL = _public.geturl()
IS_PUBLIC_URL_HTTPS = _public.scheme == "https"
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS",
    default=[_public.hostname] if IS_PRODUCTION else ["127.0.0.1", "localhost", "[::1]", BIND],
)
TRUSTED_PROXY_COUNT = integer("TRUSTED_PROXY_COUNT", 0)
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
if IS_PUBLIC_URL_HTTPS and TRUSTED_PROXY_COUNT:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- Application -------------------------------------------------------------------------------

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False

INSTALLED_APPS = [
    "accounts",
    "sessions_api",
    "scripts_engine",
    "jobs",
    "hooks",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "config.apps.MoonhookAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "graphene_django",
    "django_ace",
    "django_tasks",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "config.apps.MoonhookConfig",
]

MIDDLEWARE = [
    "core.http.origin.RequestIdMiddleware",
    "core.logs.context.RequestContext",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.admin.middleware.AdminMiddleware",
    "core.http.problem_handlers.UnavailableMiddleware",
]
ADMIN_MIDDLEWARE = [  # For the pages of the admin only.
    "core.http.admin_pages.ContentSecurityPolicy",
    "config.admin.middleware.LoginBulkhead",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "config.admin.middleware.AdminActor",
    "django.contrib.messages.middleware.MessageMiddleware",
    "config.admin.middleware.AdminSessionLimits",
]
# These checks look for ADMIN_MIDDLEWARE's middleware in MIDDLEWARE.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410", "security.W003"]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "core.http.problem_handlers.problem_exception_handler",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "NUM_PROXIES": TRUSTED_PROXY_COUNT,
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
ARE_STATIC_FILES_COLLECTED = env.str("STATIC_ROOT", default="") != ""  # By an image or a package.
STATIC_ROOT = Path(env.str("STATIC_ROOT", default="") or DATA_DIR / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- Database ----------------------------------------------------------------------------------

DATABASE_TIMEOUT_SECONDS = integer("DATABASE_TIMEOUT", 10, minimum=1)  # A statement on PostgreSQL.
DATABASE_CONNECT_SECONDS = 5  # A request's wait for a connection to PostgreSQL.
DATABASE_WAIT_SECONDS = integer("DATABASE_WAIT", 60)  # At start, for the database or a migration.
DATABASES = {
    "default": database(
        DATA_DIR,
        timeout_seconds=DATABASE_TIMEOUT_SECONDS,
        connect_seconds=DATABASE_CONNECT_SECONDS,
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Background tasks --------------------------------------------------------------------------

# Each queue has threads of its own: codes by e-mail, codes by SMS, and all other messages.
TASKS = {
    "default": {
        "BACKEND": "jobs.messages.backend.MessageBackend",
        "QUEUES": ["email", "sms", "default"],
    }
}
# The longest delay after each failed attempt; an attempt more than delays, and it has failed.
TASK_RETRY_SECONDS = integers("TASK_RETRIES", (5, 20, 60, 180, 600, 1800, 7200))
TASK_TIMEOUT_SECONDS = integer("TASK_TIMEOUT", 30, minimum=1)
TASK_LEASE_SECONDS = integer("TASK_LEASE", 60, minimum=2)  # Then the attempt's worker is lost.

# --- Messages ----------------------------------------------------------------------------------

OUTBOX_DIR = DATA_DIR / "outbox"  # Development writes messages to files.
_email_url = required_in_production(
    "EMAIL_URL", MOONHOOK_ENV, "Example: smtp+tls://user:password@mail.example.com:587"
)
IS_EMAIL_CONFIGURED = _email_url is not None
vars().update(email(_email_url, OUTBOX_DIR))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str(
    "EMAIL_FROM", default=f"Moonhook <moonhook@{_public.hostname}>"
)
# An Apprise URL with {phone}; "off": no SMS, e-mail instead.
SMS_URL = required_in_production(
    "SMS_URL", MOONHOOK_ENV, "Example: twilio://SID:TOKEN@FROM/{phone}, or off for no SMS."
)
SMS_COUNTRIES = frozenset(env.list("SMS_COUNTRIES", default=[]))  # DE,AT,CH; empty: all.
SMS_DAILY_BUDGET = integer("SMS_DAILY_BUDGET", 0)  # SMS a day in total; 0: no limit.
# Caused by one organisation's users, invitations, keys and test messages; 0: no limit.
ORGANISATION_MAILS_PER_DAY = integer("ORGANISATION_MAILS_PER_DAY", 2000)
ORGANISATION_SMS_PER_DAY = integer("ORGANISATION_SMS_PER_DAY", 200)

# --- Rate limits -------------------------------------------------------------------------------

IS_RATE_LIMITED = switch("RATE_LIMITS", "on")
if IS_PRODUCTION and not IS_RATE_LIMITED:
    raise ImproperlyConfigured("RATE_LIMITS=off is for load tests; production refuses it.")

# --- Identity: PINs, sessions, invitations -----------------------------------------------------

PIN_LIFETIME = timedelta(minutes=10)
PIN_LIVE_CODES = 3
PIN_TRIES_PER_DEVICE = 5  # In one challenge.
PIN_FAILURES_PER_DAY = 20
PIN_FAILURES_OF_NAMED_PER_DAY = 50  # 10 sends a day, each with the tries of one device.
PIN_CONSECUTIVE_FAILURES = 100

API_KEY_SESSION_IDLE = timedelta(hours=1)
API_KEY_SESSION_ABSOLUTE = timedelta(hours=12)
DEVICE_SESSION_IDLE = timedelta(days=90)
DEVICE_SESSION_ABSOLUTE = timedelta(days=365)
SESSION_USE_WRITTEN_EVERY = timedelta(minutes=5)
SESSIONS_PER_DEVICE_TOKEN = 10
SESSIONS_PER_API_KEY = 100

# Logins of programs by device code, and the keys that they get (RFC 8628).
DEVICE_CODE_LIFETIME = timedelta(minutes=10)
DEVICE_CODE_INTERVAL_SECONDS = 5
DEVICE_KEY_DAYS = 90
DEVICE_KEY_MAX_DAYS = 365

INVITATION_LIFETIME = timedelta(days=14)
# Of the links in e-mails that set a password for the admin, in hours.
PASSWORD_LINK_LIFETIME = timedelta(hours=integer("PASSWORD_LINK_HOURS", 24, minimum=1))
PASSWORD_RESET_TIMEOUT = int(PASSWORD_LINK_LIFETIME.total_seconds())

# --- Admin -------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.backends.CanonicalEmailBackend"]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
PASSWORD_HASHERS = ["accounts.password_hasher.BoundedPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

ADMIN_SESSION_IDLE = timedelta(hours=1)
ADMIN_SESSION_ABSOLUTE = timedelta(hours=12)
SESSION_COOKIE_AGE = int(ADMIN_SESSION_ABSOLUTE.total_seconds())
SESSION_ENGINE = "config.admin.sessions"
SESSION_COOKIE_NAME = "moonhook_admin"
CSRF_COOKIE_NAME = "moonhook_admin_csrf"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/admin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PUBLIC_URL_HTTPS
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if IS_PUBLIC_URL_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# "required": staff must set up a second factor before anything else.
IS_SECOND_FACTOR_REQUIRED = (
    choice("ADMIN_SECOND_FACTOR", "optional", ("optional", "required")) == "required"
)
OTP_TOTP_ISSUER = "Moonhook"
OTP_TOTP_THROTTLE_FACTOR = OTP_STATIC_THROTTLE_FACTOR = 1 if IS_RATE_LIMITED else 0

# Per web worker. Hashing a password takes one core for a third of a second.
PASSWORD_HASHES_AT_ONCE = integer("PASSWORD_HASHES_AT_ONCE", 2, minimum=1)
PASSWORD_HASHES_WAITING = 2  # For known users; others are refused immediately.
PASSWORD_HASHES_WAIT_SECONDS = 2

# The database time of one page. It does not interrupt a page that has started to write.
ADMIN_DEADLINE_SECONDS = integer("ADMIN_DEADLINE", 10, minimum=1)
ADMIN_MAX_COUNTED = 10_000  # Rows that a list counts and pages through.
ADMIN_MAX_ACTED_ON = 1_000  # Rows that an action takes if all are selected.
# Pages per web worker. A page takes tenths of a second of one core: more of them at a time would
# only delay /session and /healthz.
ADMIN_AT_ONCE = integer("ADMIN_AT_ONCE", 3, minimum=1)
ADMIN_AT_ONCE_PER_ORGANISATION = integer("ADMIN_AT_ONCE_PER_ORGANISATION", 2, minimum=1)
ADMIN_WAITING = integer("ADMIN_WAITING", 6)  # For users who open many pages in tabs.
ADMIN_WAIT_SECONDS = 0.5

# --- Request bodies, in bytes ------------------------------------------------------------------

REST_MAX_BODY_BYTES = 16 * 1024
USER_GRAPHQL_MAX_BODY_BYTES = 16 * 1024
# A manifest has up to 512 KiB, and escapes in JSON take more bytes than what they stand for.
ADMIN_GRAPHQL_MAX_BODY_BYTES = 1024 * 1024
HOOK_MAX_BODY_BYTES = 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024  # The admin; other endpoints check theirs first.
# A request gets a thread when its body is complete, or immediately, to be refused, if it is longer.
MAX_BODY_BYTES = max(HOOK_MAX_BODY_BYTES, DATA_UPLOAD_MAX_MEMORY_SIZE)

# --- GraphQL -----------------------------------------------------------------------------------

GRAPHQL_DEADLINE_SECONDS = integer("GRAPHQL_DEADLINE", 10, minimum=1)  # Spares started mutations.
GRAPHQL_MAX_COST = integer("GRAPHQL_MAX_COST", 50_000, minimum=1)  # Points; docs/api.md.
# Documents per web worker: in total, and of one organisation, user, or client without a session.
GRAPHQL_AT_ONCE = integer("GRAPHQL_AT_ONCE", 4, minimum=1)
GRAPHQL_AT_ONCE_PER_ORGANISATION = integer("GRAPHQL_AT_ONCE_PER_ORGANISATION", 2, minimum=1)
# Documents that wait, each with a thread; those that arrive together are mostly small.
GRAPHQL_WAITING = integer("GRAPHQL_WAITING", 8)
GRAPHQL_WAIT_SECONDS = 0.5
# Documents within both limits take milliseconds and are not counted among those at once.
GRAPHQL_SHORT_LENGTH = 500  # Characters.
GRAPHQL_SMALL_COST = 1_000  # Points.

# --- Scripts -----------------------------------------------------------------------------------

# Private networks that scripts may call, in addition to the public internet.
HTTP_ALLOWED_NETWORKS = networks("HTTP_ALLOWED_NETWORKS")
HTTP_CA_BUNDLE = env.str("HTTP_CA_BUNDLE", default="")

# Per web worker: runs at a time.
SANDBOX_SLOTS = integer("SANDBOX_SLOTS", 8, minimum=1)
# A process serves one organisation; those beyond the slots are kept for its next call. An idle one
# takes 2 MiB of its own. All of a worker take at most a sixteenth of the memory.
SANDBOX_PROCESSES = integer(
    "SANDBOX_PROCESSES",
    max(2 * SANDBOX_SLOTS, min(usable_memory_bytes() // 16 // (2 * 1024**2), 256)),
    minimum=SANDBOX_SLOTS,
)
# Runs that wait for a slot, each with a thread; further ones are refused immediately. Half of the
# places are for one organisation at most: enough for a burst of short calls.
SANDBOX_QUEUE = integer("SANDBOX_QUEUE", 4 * SANDBOX_SLOTS, minimum=1)
# Calls that wait for the reply to an equal delivery, or for their hook to have fewer runs at once,
# each with a thread. At most half are of one organisation; further ones are refused immediately.
CALLS_WAITING = integer("CALLS_WAITING", 8, minimum=1)

# --- What an organisation may have; one more is refused -----------------------------------------

SCRIPTS_PER_ORGANISATION = integer("SCRIPTS_PER_ORGANISATION", 1_000, minimum=1)
HOOKS_PER_ORGANISATION = integer("HOOKS_PER_ORGANISATION", 10_000, minimum=1)
API_KEYS_PER_ORGANISATION = integer("API_KEYS_PER_ORGANISATION", 1_000, minimum=1)
USERS_PER_ORGANISATION = integer("USERS_PER_ORGANISATION", 100_000, minimum=1)
# Uploaded sources that are in no version yet.
BLOBS_PER_ORGANISATION = integer("BLOBS_PER_ORGANISATION", 2_000, minimum=1)
# Changes of a script's source, each of which is a version.
SCRIPT_SAVES_PER_MINUTE = integer("SCRIPT_SAVES_PER_MINUTE", 60, minimum=1)

# --- Queue -------------------------------------------------------------------------------------

# Queued runs at once on this node, apart from the slots of calls that wait for a reply.
QUEUE_SLOTS = integer("QUEUE_SLOTS", 4, minimum=1)
QUEUE_MAX_ATTEMPTS = integer("QUEUE_MAX_ATTEMPTS", 5, minimum=1)
# Waiting runs of an organisation; calls beyond them are refused.
QUEUE_MAX_WAITING = integer("QUEUE_MAX_WAITING", 10_000, minimum=1)

# --- Retention ---------------------------------------------------------------------------------

# Runs are deleted by age or number, whichever comes first; 0: no limit. Organisations may differ.
RUNS_KEPT_DAYS = integer("RUNS_KEPT_DAYS", 30)
RUNS_KEPT_PER_ORGANISATION = integer("RUNS_KEPT_PER_ORGANISATION", 100_000)
# Beyond it the oldest payloads are deleted, but not their runs; 0: no quota. Organisations may
# differ.
RUN_BYTES_PER_ORGANISATION = integer("RUN_BYTES_PER_ORGANISATION", 1024**3)
VERSIONS_KEPT_PER_SCRIPT = integer("VERSIONS_KEPT_PER_SCRIPT", 200, minimum=1)
RELEASES_KEPT = integer("RELEASES_KEPT", 500, minimum=0)  # 0: unlimited.
RELEASES_KEPT_DAYS = integer("RELEASES_KEPT_DAYS", 400, minimum=0)  # 0: unlimited.
AUTH_EVENTS_KEPT = timedelta(days=400)
TASKS_KEPT = timedelta(days=1)
FAILED_TASKS_KEPT = timedelta(days=14)

# --- Web server --------------------------------------------------------------------------------

# One per core, since the threads of a process share a core. At least two, so that one may be
# replaced; at most four by default, since each may use as many PostgreSQL connections as threads.
WEB_WORKERS = integer("WEB_CONCURRENCY", min(max(2, usable_cores()), 4), minimum=1)
# What may hold a worker's threads for long. /session, /healthz, /readyz and /metrics are not in the
# sum: they are brief and share the remaining threads with calls that are refused.
WEB_THREADS_HELD = {
    "SANDBOX_SLOTS": SANDBOX_SLOTS,
    "SANDBOX_QUEUE": SANDBOX_QUEUE,
    "CALLS_WAITING": CALLS_WAITING,
    "GRAPHQL_AT_ONCE": GRAPHQL_AT_ONCE,
    "GRAPHQL_WAITING": GRAPHQL_WAITING,
    "ADMIN_AT_ONCE": ADMIN_AT_ONCE,
    "ADMIN_WAITING": ADMIN_WAITING,
}
WEB_THREADS = integer("WEB_THREADS", sum(WEB_THREADS_HELD.values()) + 6, minimum=1)
# Requests that rarely block; a worker serves them in green threads of its main thread.
GREEN_THREAD_REQUESTS = re.compile(rb"(?:GET|POST) /hook/|GET /session[ ?]")
WEB_MAX_REQUESTS = integer("WEB_MAX_REQUESTS", 50_000)  # Of a worker, ± 10 %; 0: no limit.
CLIENT_TIMEOUT_SECONDS = integer("CLIENT_TIMEOUT", 30, minimum=1)
# Memory of a worker for incomplete or waiting requests and for replies that clients read slowly.
CLIENT_BUFFER_BYTES = integer("CLIENT_BUFFER_MIB", 64, minimum=8) * 1024 * 1024
READINESS_TIMEOUT_SECONDS = 2  # Of /readyz, for each check.
# A stopping node serves requests for this long, until balancers notice; then it waits for calls.
DRAIN_SECONDS = integer("DRAIN_SECONDS", 5 if IS_PRODUCTION else 0)
GRACEFUL_TIMEOUT_SECONDS = integer("GRACEFUL_TIMEOUT", 40)

# --- Logging -----------------------------------------------------------------------------------

IS_LOG_JSON = (
    choice("LOG_FORMAT", "json" if IS_PRODUCTION else "console", ("json", "console")) == "json"
)
IS_ACCESS_LOGGED = switch("ACCESS_LOG", "on")
IS_AUDIT_WRITTEN_TO_STDOUT = choice("AUDIT_LOG", "database", ("database", "stdout")) == "stdout"
LOGGING_CONFIG = "core.logs.setup.configure_logs"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "event": {"()": "core.logs.setup.event_formatter", "is_json": IS_LOG_JSON},
    },
    "filters": {"refusals": {"()": "core.logs.setup.RefusalsWithoutTraceback"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "event",
            "filters": ["refusals"],
        }
    },
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "django": {"handlers": [], "propagate": True},
        "django.server": {"handlers": [], "propagate": True},
        # The access log has the status; core.logs.context logs exceptions.
        "django.request": {"level": "CRITICAL"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        # Reports every attempt to reconnect; requests report a missing connection themselves.
        "psycopg.pool": {"level": "ERROR"},
        # At DEBUG these log whole messages, with their codes, and the URLs that scripts call, with
        # any secrets in them.
        "apprise": {"level": "INFO"},
        "urllib3": {"level": "INFO"},
    },
}

# --- Metrics -----------------------------------------------------------------------------------

ARE_METRICS_ON = switch("METRICS", "off")
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
if METRICS_TOKEN:
    require_strength(
        "METRICS_TOKEN",
        METRICS_TOKEN,
        KEY_HINT,
        min_length=16,
        min_different=5 if IS_PRODUCTION else 1,
    )
METRICS_NETWORKS = metrics_networks(
    is_on=ARE_METRICS_ON, has_token=bool(METRICS_TOKEN), environment=MOONHOOK_ENV
)
# The counters of this node's processes.
METRICS_DIR = Path(env.str("PROMETHEUS_MULTIPROC_DIR", default=str(DATA_DIR / "metrics"))).resolve()
if ARE_METRICS_ON:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)  # Read by prometheus_client.
    MIDDLEWARE.insert(0, "core.metrics.requests.RequestMetrics")

# --- Appearance of the admin -------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "Moonhook",
    "SITE_HEADER": "Moonhook",
    "SITE_SUBHEADER": "Sessions, scripts and hooks",
    "SITE_SYMBOL": "webhook",
    "SITE_URL": None,
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": [
        lambda request: static("moonhook/admin.css"),
        lambda request: static("moonhook/accessible.css"),
    ],
    "SCRIPTS": [
        lambda request: static("moonhook/accessible.js"),
        lambda request: static("moonhook/command.js"),
        lambda request: static("moonhook/forget_typed.js"),
    ],
    "SIDEBAR": {"navigation": "config.admin.navigation.navigation"},
    "ACCOUNT": {"navigation": "config.admin.navigation.account_links"},
}
