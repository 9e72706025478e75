from django.urls import path, re_path

from hooks.views import call_by_basic_auth, call_by_url, no_such_hook

# The secure URL comes first, because the other pattern matches it too.
urlpatterns = [
    path(
        "hook/secure/<str:organisation_id>/<str:script_id>", call_by_basic_auth, name="hook-secure"
    ),
    path("hook/<str:organisation_id>/<str:script_id>/<str:call_token>", call_by_url, name="hook"),
    re_path(r"^hook/", no_such_hook),
]
