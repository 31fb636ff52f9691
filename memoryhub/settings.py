"""All settings of a hub. Every value comes from the environment (docs/settings.md lists them) or has a working default."""

import os
import secrets
import sys
from pathlib import Path
from typing import Any

from csp.constants import NONCE, SELF
from django.core.exceptions import ImproperlyConfigured

from memoryhub import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.folder("MEMORYHUB_DATA_DIR", BASE_DIR / "data")


def _kept_secret(name: str) -> str:
    """Return the secret from the environment, or one that is made once and kept in the data folder."""
    value = env.secret(name)
    if value:
        return value
    path = DATA_DIR / name.removeprefix("MEMORYHUB_").lower()
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        try:
            os.link(draft, path)  # the first of several starting processes wins
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


# --- Who may reach the hub -------------------------------------------------------------------------------------------
DEBUG = env.flag("MEMORYHUB_DEBUG")
BIND_HOST = env.text("MEMORYHUB_HOST", "127.0.0.1")
BIND_PORT = env.integer("MEMORYHUB_PORT", 8000, least=1, most=65535)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_allowed_hosts = env.words("MEMORYHUB_ALLOWED_HOSTS")
if BIND_HOST not in _LOOPBACK and not (_allowed_hosts and env.secret("MEMORYHUB_SECRET_KEY")):
    raise ImproperlyConfigured(
        f"The setting MEMORYHUB_HOST is {BIND_HOST!r}, which others can reach; set MEMORYHUB_ALLOWED_HOSTS "
        "(the names people use) and MEMORYHUB_SECRET_KEY (a long random text) as well."
    )
ALLOWED_HOSTS = [*_allowed_hosts, "localhost", "127.0.0.1", "[::1]"]
SECRET_KEY = _kept_secret("MEMORYHUB_SECRET_KEY")
KEY_PEPPER = _kept_secret("MEMORYHUB_KEY_PEPPER")  # API keys are stored as HMACs under it
HTTPS = env.flag("MEMORYHUB_HTTPS")  # the hub is reached through a proxy that speaks TLS
CSRF_TRUSTED_ORIGINS = env.words("MEMORYHUB_TRUSTED_ORIGINS")
TRUSTED_PROXY_COUNT = env.integer("MEMORYHUB_TRUSTED_PROXIES", 0, most=10)  # how many X-Forwarded-For hops are ours
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS and TRUSTED_PROXY_COUNT else None
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SESSION_COOKIE_NAME = "memoryhub_session"
CSRF_COOKIE_NAME = "memoryhub_csrf"
CSRF_FAILURE_VIEW = "memoryhub.web.problems.csrf_failed"
SESSION_COOKIE_AGE = 14 * 24 * 3600
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": [SELF],
        "frame-ancestors": ["'none'"],
    }
}

# --- Django ----------------------------------------------------------------------------------------------------------
ROOT_URLCONF = "memoryhub.urls"
WSGI_APPLICATION = "memoryhub.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "workspaces.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "template_partials",
    "ninja",
    "memoryhub.workspaces",
    "memoryhub.audit",
    "memoryhub.work",
    "memoryhub.invalidation",
    "memoryhub.webhooks",
    "memoryhub.prompt_cache",
    "memoryhub.session_cache",
    "memoryhub.long_term_memory",
    "memoryhub.jobs",
    "memoryhub.api",
    "memoryhub.web",
]
MIDDLEWARE = [
    "memoryhub.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memoryhub.middleware.BodyLimitMiddleware",
    "memoryhub.doors.DoorMiddleware",
    "memoryhub.api.idempotency.IdempotencyMiddleware",
]
SILENCED_SYSTEM_CHECKS = [
    "security.W002",
    "security.W003",
]  # both stand in PAGE_MIDDLEWARE; tests/test_doors.py holds them
PAGE_MIDDLEWARE = [  # what people's browsers need, and what a caller with a key does not pay for
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "memoryhub.web.access.ViewerMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "memoryhub.web.context.csp_nonce",
                "memoryhub.web.context.shell",
            ],
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

if "pytest" in sys.modules:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # tests sign in a thousand times

# --- Language and time -----------------------------------------------------------------------------------------------
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_COOKIE_NAME = "memoryhub_language"
LOCALE_PATHS = [BASE_DIR / "memoryhub" / "locale"]

# --- Database --------------------------------------------------------------------------------------------------------
DURABILITY = env.choice("MEMORYHUB_DURABILITY", "normal", ("normal", "full"))
_postgres = env.database_url("DATABASE_URL")
DATABASES: dict[str, dict[str, Any]]
if _postgres:
    _postgres["OPTIONS"]["pool"] = {"min_size": 2, "max_size": env.integer("MEMORYHUB_DB_POOL", 20, least=2, most=500)}
    DATABASES = {"default": {**_postgres, "CONN_MAX_AGE": 0}}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATA_DIR / "memoryhub.sqlite3",
            "CONN_MAX_AGE": None,  # a kept connection reads four times faster
            "OPTIONS": {
                "timeout": 20,  # a hundred writers at once on a slow machine queue for longer than five seconds
                "transaction_mode": "IMMEDIATE",  # deferred writers deadlock on the upgrade of their lock
                "init_command": (
                    f"PRAGMA journal_mode=WAL; PRAGMA synchronous={DURABILITY.upper()}; PRAGMA cache_size=-32000; "
                    "PRAGMA wal_autocheckpoint=8000; "  # 32 MB: a page that is written again and again is copied once
                    "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=268435456; PRAGMA journal_size_limit=67108864; "
                    "PRAGMA secure_delete=ON;"  # what is erased must not stay in free pages
                ),
            },
        }
    }
if os.environ.get("MEMORYHUB_TEST_DB_SUFFIX") and _postgres:
    DATABASES["default"]["TEST"] = {"NAME": f"test_memoryhub_{os.environ['MEMORYHUB_TEST_DB_SUFFIX']}"}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# --- Jobs ------------------------------------------------------------------------------------------------------------
# The Job rows are the truth; the queue only rings the bell: `sqlite`, `postgres`, or a redis:// URL.
QUEUE_URL = env.secret("MEMORYHUB_QUEUE", "sqlite")
if QUEUE_URL not in ("sqlite", "postgres") and not QUEUE_URL.startswith(("redis://", "rediss://")):
    raise ImproperlyConfigured("The setting MEMORYHUB_QUEUE must be sqlite, postgres or a redis:// URL.")
if QUEUE_URL == "postgres" and not _postgres:
    raise ImproperlyConfigured("The setting MEMORYHUB_QUEUE is postgres, but DATABASE_URL is not set.")
BACKUPS_KEPT = env.integer("MEMORYHUB_BACKUPS_KEPT", 7, most=1000)  # daily copies in the data folder
WORKER_THREADS = env.integer("MEMORYHUB_WORKER_THREADS", 2, least=1, most=64)
JOB_LEASE_SECONDS = env.integer(
    "MEMORYHUB_JOB_LEASE_SECONDS", 60, least=1, most=3600
)  # a dead worker's job waits so long
JOBS_IMMEDIATE = False  # tests switch it on to run a job where it is rung
NOTE_KEY_USES = "pytest" not in sys.modules

# --- Server ----------------------------------------------------------------------------------------------------------
WEB_WORKERS = env.integer("MEMORYHUB_WEB_WORKERS", 1, least=1, most=64)
WEB_THREADS = env.integer("MEMORYHUB_WEB_THREADS", 256, least=8, most=1024)
MAX_STREAMS = env.integer("MEMORYHUB_MAX_STREAMS", 200, least=1, most=1000)  # open streams hold a thread each
API_BODY_LIMIT_BYTES = 10 * 1024 * 1024
PROXY_BODY_LIMIT_BYTES = 64 * 1024 * 1024
IMPORT_BODY_LIMIT_BYTES = 1024 * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = PROXY_BODY_LIMIT_BYTES
FILE_UPLOAD_TEMP_DIR = DATA_DIR

# --- Layers ----------------------------------------------------------------------------------------------------------
ANTHROPIC_UPSTREAM = env.text("MEMORYHUB_ANTHROPIC_UPSTREAM", "https://api.anthropic.com")
ANTHROPIC_API_KEY = env.secret("MEMORYHUB_ANTHROPIC_API_KEY")
ANTHROPIC_TIMEOUT_SECONDS = env.integer("MEMORYHUB_ANTHROPIC_TIMEOUT_SECONDS", 600, least=1, most=86_400)
SPOOL_THREAD = "pytest" not in sys.modules  # tests record what the proxy noted when they want it
EXTRACTION_MODEL = env.text(
    "MEMORYHUB_EXTRACTION_MODEL", "claude-haiku-5-5"
)  # reads sessions for what is worth keeping
FINGERPRINT_DAYS = env.integer(
    "MEMORYHUB_FINGERPRINT_DAYS", 30, least=1, most=3650
)  # hashes of requests, for the doctor
TRANSCRIPT_DIRS = env.words("MEMORYHUB_TRANSCRIPT_DIRS")  # folders of transcripts that the hub itself may read
FILE_ROOTS = env.words("MEMORYHUB_FILE_ROOTS")  # folders whose files the hub may fingerprint and watch
WEBHOOKS_PRIVATE = env.flag("MEMORYHUB_WEBHOOKS_PRIVATE")  # whether webhooks may lead into private networks
# Tool results: what one session, and what a workspace's shared results may take, and who goes first when it is full.
TOOL_CACHE_SESSION_BYTES = env.integer("MEMORYHUB_TOOL_CACHE_SESSION_BYTES", 50 * 1024 * 1024, least=1024, most=2**40)
TOOL_CACHE_SHARED_BYTES = env.integer("MEMORYHUB_TOOL_CACHE_SHARED_BYTES", 500 * 1024 * 1024, least=1024, most=2**40)
TOOL_CACHE_EVICTION = env.choice("MEMORYHUB_TOOL_CACHE_EVICTION", "gdsf", ("gdsf", "lru", "lfu"))
TOOL_CACHE_FLUSHER = "pytest" not in sys.modules  # hits are counted in memory and stored by a thread
USAGE_RETENTION_DAYS = env.integer("MEMORYHUB_USAGE_RETENTION_DAYS", 0, most=36500)  # 0 keeps usage for ever
SESSION_RETENTION_DAYS = env.integer("MEMORYHUB_SESSION_RETENTION_DAYS", 0, most=36500)  # 0 keeps sessions for ever
EMBEDDER = env.choice("MEMORYHUB_EMBEDDER", "local", ("local", "openai_compatible", "voyage", "none"))
EMBEDDER_URL = env.text("MEMORYHUB_EMBEDDER_URL")
EMBEDDER_MODEL = env.text("MEMORYHUB_EMBEDDER_MODEL")
EMBEDDER_API_KEY = env.secret("MEMORYHUB_EMBEDDER_API_KEY")
EMBEDDER_DIMENSIONS = env.integer("MEMORYHUB_EMBEDDER_DIMENSIONS", 0, most=8192)  # 0: as the provider gives them
EMBEDDER_QUERY_PREFIX = env.text("MEMORYHUB_EMBEDDER_QUERY_PREFIX")  # what the model wants before a question
EMBEDDER_DOCUMENT_PREFIX = env.text("MEMORYHUB_EMBEDDER_DOCUMENT_PREFIX")  # and before a stored text

# --- Static files ----------------------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = env.folder("MEMORYHUB_STATIC_DIR", BASE_DIR / "build" / "static")  # filled by the first start
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "memoryhub.wheel_files.WheelFilesFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
if "pytest" in sys.modules or DEBUG:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    WHITENOISE_USE_FINDERS = True
    WHITENOISE_AUTOREFRESH = DEBUG

# --- Logs ------------------------------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "memoryhub.logs.JsonFormatter"}, "plain": {"()": "memoryhub.logs.PlainFormatter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": env.choice("MEMORYHUB_LOG_FORMAT", "plain", ("plain", "json")),
        }
    },
    "root": {
        "handlers": ["console"],
        "level": env.choice("MEMORYHUB_LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR")),
    },
    "loggers": {
        "django.request": {"level": "ERROR"},  # what a caller did wrong is told to the caller
        "memoryhub": {"level": env.choice("MEMORYHUB_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))},
    },
}
