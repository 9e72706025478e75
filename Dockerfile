# One image for web nodes and jobs runners: what it does is said by its arguments.
FROM python:3.13-slim-trixie AS build

WORKDIR /app
COPY requirements/runtime.txt requirements/
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes -r requirements/runtime.txt

COPY . .
# Static files are collected once, here. What settings ask for meanwhile is thrown away.
RUN MOONHOOK_DATA_DIR=/tmp/build STATIC_ROOT=/app/static \
        /venv/bin/python manage.py collectstatic --noinput --verbosity 0 \
    && /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash . \
    && rm -rf /tmp/build


FROM python:3.13-slim-trixie

# The sandbox filters system calls with libseccomp; docs/deploy.md says what it needs besides.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libseccomp2 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 moonhook \
    && useradd --system --uid 10001 --gid moonhook --home-dir /nonexistent --shell /usr/sbin/nologin moonhook \
    && install -d -o moonhook -g moonhook -m 700 /data

COPY --from=build /venv /venv
COPY --from=build /app /app

WORKDIR /app
USER moonhook
ENV MOONHOOK_ENV=production \
    MOONHOOK_DATA_DIR=/data \
    STATIC_ROOT=/app/static \
    BIND=0.0.0.0 \
    PORT=8000 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["/venv/bin/python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=2)"]
ENTRYPOINT ["/venv/bin/python", "manage.py"]
CMD ["serve", "web", "--no-migrate"]
