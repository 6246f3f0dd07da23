from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "apps.results"

    def ready(self) -> None:
        from apps.operations.queueing import SCHEDULES
        from apps.operations.workers.jobs import register_job
        from apps.results.retention.pruning import list_prunings
        from apps.results.tasks import answer_engine_trial, answer_trial, prune

        register_job(answer_trial)
        register_job(answer_engine_trial)
        register_job(prune, queue=SCHEDULES, list_waiting=list_prunings)
