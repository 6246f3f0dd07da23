"""Ends of tokens: with a new password of their user, as sessions and JWTs end."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.utils import timezone

from apps.api.models import AccessToken


@receiver(pre_save, sender=User)
def end_with_password(sender: type[User], instance: Any, update_fields: Any = None, **kwargs: Any) -> None:
    """Revoke the tokens of a user whose password is about to change, or to be none.

    The same password hashed anew, as Django does at a sign-in after its hasher changed, is no new one: only of one that
    is set does the row hold the text.
    """
    if instance._state.adding or (update_fields is not None and "password" not in update_fields):
        return
    if instance._password is None and instance.has_usable_password():
        return
    if User.objects.filter(pk=instance.pk).exclude(password=instance.password).exists():
        AccessToken.objects.filter(user=instance.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
