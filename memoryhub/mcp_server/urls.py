"""Paths of this door."""

from django.urls import URLPattern, path

from memoryhub.mcp_server.views import mcp

urlpatterns: list[URLPattern] = [path("", mcp, name="mcp")]
