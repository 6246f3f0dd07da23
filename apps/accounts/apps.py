from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from apps.accounts import bin, tokens  # noqa: F401  (tokens listens)
        from benchbench.site.deleting import BINS

        BINS.append(bin)
