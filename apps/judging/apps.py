from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "apps.judging"

    def ready(self) -> None:
        from apps.judging.tasks import LLMJudgingHandler, renew_state
        from apps.operations.handlers import register_handler
        from apps.operations.workers.jobs import register_job

        register_handler(LLMJudgingHandler())
        register_job(renew_state)
