"""Which addresses people see in a browser, beside those of programs."""

from django.http import HttpRequest


def is_admin_page(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/") and request.path_info != "/admin/graphql"
