from django.urls import path

from sessions_api.device_authorization import views as oauth
from sessions_api.views import SessionView

urlpatterns = [
    path("session", SessionView.as_view(), name="session"),
    path(".well-known/oauth-authorization-server", oauth.metadata, name="oauth-metadata"),
    path("oauth/device_authorization", oauth.start, name="device-authorization"),
    path("oauth/token", oauth.token, name="oauth-token"),
]
