"""``python -m core.server -c config/gunicorn.conf.py``: gunicorn's command with our arbiter."""

from gunicorn.app.wsgiapp import WSGIApplication

from core.server.arbiter import MoonhookArbiter


class WebServer(WSGIApplication):
    def run(self) -> None:
        MoonhookArbiter(self).run()


if __name__ == "__main__":
    WebServer("%(prog)s [OPTIONS]", prog="moonhook-web").run()
