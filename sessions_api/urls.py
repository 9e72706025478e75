from django.urls import path

from sessions_api.views import SessionView

urlpatterns = [path("session", SessionView.as_view(), name="session")]
