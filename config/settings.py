"""Every setting, read from the environment. docs/configuration.md explains each variable."""

import os
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from config.environment import (
    DEVELOPMENT,
    KEY_HINT,
    MIN_PEPPER_BYTES,
    PEPPER_HINT,
    PRODUCTION,
    GeneratedSecrets,
    choice,
    data_directory,
    env,
    integer,
    integers,
    networks,
    parse_peppers,
    require_strength,
    required_in_production,
    usable_cores,
)

BASE_DIR = Path(__file__).resolve().parent.parent

MOONHOOK_ENV = choice("MOONHOOK_ENV", DEVELOPMENT, (DEVELOPMENT, PRODUCTION))
IS_PRODUCTION = MOONHOOK_ENV == PRODUCTION
DATA_DIR = data_directory(Path(env.str("MOONHOOK_DATA_DIR", default=str(BASE_DIR / "var"))))

# A page with a traceback is never served: development reads the log like production does.
DEBUG = False

_generated = GeneratedSecrets(DATA_DIR / "secrets.json")

SECRET_KEY = required_in_production("SECRET_KEY", MOONHOOK_ENV, KEY_HINT) or _generated.get(
    "SECRET_KEY"
)

PEPPERS = parse_peppers(
    required_in_production("MOONHOOK_PEPPERS", MOONHOOK_ENV, PEPPER_HINT)
    or _generated.get("MOONHOOK_PEPPERS")
)

if IS_PRODUCTION:
    require_strength(
        "SECRET_KEY",
        SECRET_KEY,
        KEY_HINT,
        min_length=50,
        min_different=10,
        forbidden_prefix="django-insecure-",
    )
    for _version, _pepper in PEPPERS.items():
        require_strength(
            f"MOONHOOK_PEPPERS: version {_version}",
            _pepper,
            PEPPER_HINT,
            min_length=MIN_PEPPER_BYTES,
            min_different=16,
        )

# --- Addresses ---------------------------------------------------------------------------------

BIND = env.str("BIND", default="127.0.0.1")
PORT = integer("PORT", 8000, minimum=1)
PUBLIC_URL = (
    required_in_production("PUBLIC_URL", MOONHOOK_ENV, "Example: https://hooks.example.com")
    or f"http://127.0.0.1:{PORT}"
).rstrip("/")
_public = urlsplit(PUBLIC_URL)
if _public.scheme not in ("http", "https") or not _public.hostname:
    raise ImproperlyConfigured("PUBLIC_URL must be an http or https address.")
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

INSTALLED_APPS = [
    "accounts",
    "sessions_api",
    "scripts_engine",
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
    "core.tasks",
    "django_tasks_db",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "config.apps.MoonhookConfig",
]

MIDDLEWARE = [
    "core.http.request_id.RequestIdMiddleware",
    "core.logs.context.RequestContext",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.admin.middleware.Desk",
    "core.http.unavailable.UnavailableMiddleware",
]
DESK_MIDDLEWARE = [
    "core.http.admin_pages.ContentSecurityPolicy",
    "config.admin.middleware.LoginBulkhead",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "config.admin.middleware.AdminSessionLimits",
]
# They look for these in MIDDLEWARE alone.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410", "security.W003"]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False

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

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
# Whoever names a directory has collected the files into it: an image, a package.
ARE_STATIC_FILES_COLLECTED = env.str("STATIC_ROOT", default="") != ""
STATIC_ROOT = Path(env.str("STATIC_ROOT", default="") or DATA_DIR / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# Bodies are bounded by each door before Django looks at them; this is the admin's own limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PUBLIC_URL_HTTPS
SESSION_COOKIE_NAME = "moonhook_admin"
CSRF_COOKIE_NAME = "moonhook_admin_csrf"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/admin"
ADMIN_SESSION_IDLE = timedelta(hours=1)
ADMIN_SESSION_ABSOLUTE = timedelta(hours=12)
SESSION_COOKIE_AGE = int(ADMIN_SESSION_ABSOLUTE.total_seconds())
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if IS_PUBLIC_URL_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "core.http.problem_handlers.problem_exception_handler",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "NUM_PROXIES": TRUSTED_PROXY_COUNT,
}

# --- Database ----------------------------------------------------------------------------------

DATABASES = {
    "default": env.db("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'moonhook.sqlite3'}")
}
_database = DATABASES["default"]
# PostgreSQL: how long a statement may take, and how long a request waits for a connection.
DATABASE_TIMEOUT_SECONDS = integer("DATABASE_TIMEOUT", 10, minimum=1)
DATABASE_CONNECT_SECONDS = 5
if _database["ENGINE"] == "django.db.backends.sqlite3":
    _database["ENGINE"] = "core.database.sqlite"
    _database["CONN_MAX_AGE"] = None
    _database["OPTIONS"] = {
        # A transaction that will write takes its lock at once instead of failing half-way.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    _database["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
elif _database["ENGINE"] == "django.db.backends.postgresql":
    _database["ENGINE"] = "core.database.postgresql"
    # Beside what the address asks for: sslmode, …
    _database["OPTIONS"] = _database.get("OPTIONS", {}) | {
        "connect_timeout": DATABASE_CONNECT_SECONDS,
        "options": f"-c statement_timeout={DATABASE_TIMEOUT_SECONDS}s"
        " -c idle_in_transaction_session_timeout=60s",
        # By its first use; the cursors that Django uses for most never do.
        "prepare_threshold": 0,
        "pool": {
            "min_size": 1,
            "max_size": integer("DATABASE_POOL_SIZE", 24, minimum=1),
            "timeout": DATABASE_CONNECT_SECONDS,
            # Tried again for no longer than somebody waits: then the next request tries anew,
            # not a schedule whose pauses have grown.
            "reconnect_timeout": DATABASE_CONNECT_SECONDS,
        },
    }
else:
    raise ImproperlyConfigured("DATABASE_URL must name SQLite or PostgreSQL.")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Background work and messages --------------------------------------------------------------

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
# How long after each failed attempt the next one is, for reasons that pass; their number bounds it.
TASK_RETRY_SECONDS = integers("TASK_RETRIES", (5, 20, 60, 180, 600, 1800, 7200))
TASK_TIMEOUT_SECONDS = integer("TASK_TIMEOUT", 30, minimum=1)
# An attempt that has not ended by then was its worker's last.
TASK_LEASE_SECONDS = integer("TASK_LEASE", 60, minimum=2)

OUTBOX_DIR = DATA_DIR / "outbox"
_email_url = required_in_production(
    "EMAIL_URL", MOONHOOK_ENV, "Example: smtp+tls://user:password@mail.example.com:587"
)
IS_EMAIL_CONFIGURED = _email_url is not None
if _email_url is not None:
    vars().update(environ.Env.email_url_config(_email_url))
    EMAIL_TIMEOUT = 15
else:
    EMAIL_BACKEND = "accounts.messages.outbox.EmailOutbox"
    EMAIL_FILE_PATH = str(OUTBOX_DIR)
# Apprise notation with {phone}; "off" says that there is no SMS here and e-mail takes its place.
SMS_URL = required_in_production(
    "SMS_URL", MOONHOOK_ENV, "Example: twilio://SID:TOKEN@FROM/{phone}, or off for no SMS."
)
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str(
    "EMAIL_FROM", default=f"Moonhook <moonhook@{_public.hostname}>"
)

# --- Rate limits -------------------------------------------------------------------------------

IS_RATE_LIMITED = choice("RATE_LIMITS", "on", ("on", "off")) == "on"
if IS_PRODUCTION and not IS_RATE_LIMITED:
    raise ImproperlyConfigured("RATE_LIMITS=off is for load tests; production refuses it.")
# Where they are counted: in the database, unless there is a Redis.
REDIS_URL = env.str("REDIS_URL", default="")
# Codes of countries that SMS are sent to (DE,AT,CH), and how many a day in all; empty: no limit.
SMS_COUNTRIES = frozenset(env.list("SMS_COUNTRIES", default=[]))
SMS_DAILY_BUDGET = integer("SMS_DAILY_BUDGET", 0)
# What the users, invitations, keys and test messages of one organisation cause; 0: no limit.
ORGANISATION_MAILS_PER_DAY = integer("ORGANISATION_MAILS_PER_DAY", 2000)
ORGANISATION_SMS_PER_DAY = integer("ORGANISATION_SMS_PER_DAY", 200)

# --- The admin's door -----------------------------------------------------------------------------

# In each web worker: one costs a core for a third of a second.
PASSWORD_HASHES_AT_ONCE = integer("PASSWORD_HASHES_AT_ONCE", 2, minimum=1)
# People who are known wait for one; strangers are refused at once.
PASSWORD_HASHES_WAITING = 2
PASSWORD_HASHES_WAIT_SECONDS = 2

# How long a page may ask the database. What has begun to write is not interrupted.
ADMIN_DEADLINE_SECONDS = integer("ADMIN_DEADLINE", 10, minimum=1)
# Rows that a list counts and pages through, and rows that an action takes when all are selected.
ADMIN_MAX_COUNTED = 10_000
ADMIN_MAX_ACTED_ON = 1_000
# Pages that a process makes at once, in all and for one organisation's administrators. A page takes
# tenths of a second of one core: more at once only make /session and /healthz wait.
ADMIN_AT_ONCE = integer("ADMIN_AT_ONCE", 3, minimum=1)
ADMIN_AT_ONCE_PER_ORGANISATION = integer("ADMIN_AT_ONCE_PER_ORGANISATION", 2, minimum=1)
# Somebody who opens many pages in tabs gets them a little later.
ADMIN_WAITING = integer("ADMIN_WAITING", 6)
ADMIN_WAIT_SECONDS = 0.5

# "required": every member of staff sets up a second factor before anything else.
IS_SECOND_FACTOR_REQUIRED = (
    choice("ADMIN_SECOND_FACTOR", "optional", ("optional", "required")) == "required"
)
OTP_TOTP_ISSUER = "Moonhook"
OTP_TOTP_THROTTLE_FACTOR = OTP_STATIC_THROTTLE_FACTOR = 1 if IS_RATE_LIMITED else 0

# --- Moonhook's own numbers --------------------------------------------------------------------

REST_MAX_BODY_BYTES = 16 * 1024
USER_GRAPHQL_MAX_BODY_BYTES = 16 * 1024
ADMIN_GRAPHQL_MAX_BODY_BYTES = 512 * 1024
HOOK_MAX_BODY_BYTES = 1024 * 1024
# A thread gets a request when all of it is there; a longer one at once, to refuse it.
MAX_BODY_BYTES = max(HOOK_MAX_BODY_BYTES, DATA_UPLOAD_MAX_MEMORY_SIZE)
# How long a GraphQL document may take. A mutation that has begun is not interrupted.
GRAPHQL_DEADLINE_SECONDS = integer("GRAPHQL_DEADLINE", 10, minimum=1)
# What a GraphQL document may cost, in points (docs/api.md).
GRAPHQL_MAX_COST = integer("GRAPHQL_MAX_COST", 50_000, minimum=1)
# GraphQL documents that a web worker works on at once, and of one organisation or user, or of one
# client without a session.
GRAPHQL_AT_ONCE = integer("GRAPHQL_AT_ONCE", 4, minimum=1)
GRAPHQL_AT_ONCE_PER_ORGANISATION = integer("GRAPHQL_AT_ONCE_PER_ORGANISATION", 2, minimum=1)
# Beyond that so many wait a moment, each with a thread; what comes together is mostly small.
GRAPHQL_WAITING = integer("GRAPHQL_WAITING", 8)
GRAPHQL_WAIT_SECONDS = 0.5
# Characters and points of documents that need no place: parsed, validated and done in milliseconds.
GRAPHQL_SHORT_LENGTH = 500
GRAPHQL_SMALL_COST = 1_000

API_KEY_SESSION_IDLE = timedelta(hours=1)
API_KEY_SESSION_ABSOLUTE = timedelta(hours=12)
DEVICE_SESSION_IDLE = timedelta(days=90)
DEVICE_SESSION_ABSOLUTE = timedelta(days=365)
SESSION_USE_WRITTEN_EVERY = timedelta(minutes=5)
SESSIONS_PER_DEVICE_TOKEN = 10
SESSIONS_PER_API_KEY = 100

AUTH_EVENTS_KEPT = timedelta(days=400)
# Runs leave by age or by number, whichever comes first; 0: not by that. Organisations may differ.
RUNS_KEPT_DAYS = integer("RUNS_KEPT_DAYS", 30)
RUNS_KEPT_PER_ORGANISATION = integer("RUNS_KEPT_PER_ORGANISATION", 100_000)
# Beyond this the oldest payloads are removed, outlines stay; 0: no quota. Organisations may differ.
RUN_BYTES_PER_ORGANISATION = integer("RUN_BYTES_PER_ORGANISATION", 1024**3)
TASKS_KEPT = timedelta(days=1)
FAILED_TASKS_KEPT = timedelta(days=14)

INVITATION_LIFETIME = timedelta(days=14)

PIN_LIFETIME = timedelta(minutes=10)
PIN_LIVE_CODES = 3
PIN_TRIES_PER_CHALLENGE = 5
PIN_FAILURES_PER_DAY = 20
PIN_CONSECUTIVE_FAILURES = 100

# What scripts may reach beside the public internet: networks of the operator's choice.
HTTP_ALLOWED_NETWORKS = networks("HTTP_ALLOWED_NETWORKS")
HTTP_CA_BUNDLE = env.str("HTTP_CA_BUNDLE", default="")

SANDBOX_SLOTS = integer("SANDBOX_SLOTS", 8, minimum=1)
# A process serves one organisation: those beyond the slots wait for their organisation's next call.
SANDBOX_PROCESSES = integer("SANDBOX_PROCESSES", 2 * SANDBOX_SLOTS, minimum=SANDBOX_SLOTS)
# One a core: threads of one process share one core. At least two, so that one may be replaced; at
# most four unless asked for: each may hold as many connections to PostgreSQL as it has threads.
WEB_WORKERS = integer("WEB_CONCURRENCY", min(max(2, usable_cores()), 4), minimum=1)
# Runs that wait for a slot, each in a thread of its own; the next one is refused at once. One
# organisation has at most half of these places too: enough for a burst of quick calls.
SANDBOX_QUEUE = integer("SANDBOX_QUEUE", 4 * SANDBOX_SLOTS, minimum=1)
# What may hold threads of a web worker for long; the sum leaves out /session, /healthz, /readyz and
# /metrics, which hold them briefly and share the rest with calls that are being refused.
WEB_THREADS_HELD = {
    "SANDBOX_SLOTS": SANDBOX_SLOTS,
    "SANDBOX_QUEUE": SANDBOX_QUEUE,
    "GRAPHQL_AT_ONCE": GRAPHQL_AT_ONCE,
    "GRAPHQL_WAITING": GRAPHQL_WAITING,
    "ADMIN_AT_ONCE": ADMIN_AT_ONCE,
    "ADMIN_WAITING": ADMIN_WAITING,
}
WEB_THREADS = integer("WEB_THREADS", sum(WEB_THREADS_HELD.values()) + 6, minimum=1)
# How long /readyz waits for an answer of what it asks.
READINESS_TIMEOUT_SECONDS = 2
# A worker is replaced after so many requests, give or take a tenth; 0: never.
WEB_MAX_REQUESTS = integer("WEB_MAX_REQUESTS", 50_000)
CLIENT_TIMEOUT_SECONDS = integer("CLIENT_TIMEOUT", 30, minimum=1)
# What a web worker keeps in memory of requests that have come in part or wait for a thread, and of
# replies that their clients have not taken yet.
CLIENT_BUFFER_BYTES = integer("CLIENT_BUFFER_MIB", 64, minimum=8) * 1024 * 1024
# A stopping node serves on for so long, that balancers may notice; then it waits for its scripts.
DRAIN_SECONDS = integer("DRAIN_SECONDS", 5 if IS_PRODUCTION else 0)
GRACEFUL_TIMEOUT_SECONDS = integer("GRACEFUL_TIMEOUT", 30)
# How long a start waits for the database, or for whoever migrates it.
DATABASE_WAIT_SECONDS = integer("DATABASE_WAIT", 60)

# --- Logging -----------------------------------------------------------------------------------

IS_LOG_JSON = (
    choice("LOG_FORMAT", "json" if IS_PRODUCTION else "console", ("json", "console")) == "json"
)
IS_ACCESS_LOGGED = choice("ACCESS_LOG", "on", ("on", "off")) == "on"
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
        # A status of 4xx or 5xx stands in the access log; exceptions are written down by
        # core.logs.context.
        "django.request": {"level": "CRITICAL"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        # Every attempt to reconnect; requests that find no connection say so themselves.
        "psycopg.pool": {"level": "ERROR"},
        # What they say at DEBUG holds whole messages, codes among them, and addresses that
        # scripts call, with whatever secret stands in those.
        "apprise": {"level": "INFO"},
        "urllib3": {"level": "INFO"},
    },
}

# --- Metrics -----------------------------------------------------------------------------------

ARE_METRICS_ON = choice("METRICS", "off", ("on", "off")) == "on"
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
METRICS_NETWORKS = networks("METRICS_NETWORKS")
# Each process of this node keeps its counts in files there.
METRICS_DIR = Path(env.str("PROMETHEUS_MULTIPROC_DIR", default=str(DATA_DIR / "metrics"))).resolve()
if METRICS_TOKEN:
    require_strength(
        "METRICS_TOKEN",
        METRICS_TOKEN,
        KEY_HINT,
        min_length=16,
        min_different=5 if IS_PRODUCTION else 1,
    )
if ARE_METRICS_ON:
    if not METRICS_TOKEN and not METRICS_NETWORKS:
        if IS_PRODUCTION:
            raise ImproperlyConfigured(
                "METRICS=on needs METRICS_TOKEN or METRICS_NETWORKS: "
                "production does not show its numbers to everybody."
            )
        METRICS_NETWORKS = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
    # Where prometheus_client looks for it.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)
    MIDDLEWARE.insert(0, "core.metrics.requests.RequestMetrics")

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
        lambda request: static("moonhook/forget_typed.js"),
    ],
    "SIDEBAR": {"navigation": "config.admin.navigation.navigation"},
    "ACCOUNT": {"navigation": "config.admin.navigation.account_links"},
    "COMMAND": {"search_models": False},
}
