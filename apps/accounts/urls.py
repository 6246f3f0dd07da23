"""Addresses of single sign-on, on sites that configure it."""

from django.urls import path

from apps.accounts.openid import finish, start

urlpatterns = [
    path("", start, name="single_sign_on"),
    path("callback/", finish, name="single_sign_on_callback"),
]
