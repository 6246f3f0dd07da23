from django.apps import AppConfig


class VerdictsConfig(AppConfig):
    name = "apps.verdicts"

    def ready(self) -> None:
        from apps.operations.queueing import NOTICES, SCHEDULES
        from apps.operations.workers.jobs import register_job
        from apps.verdicts import stored
        from apps.verdicts.schedules import jobs, notifying, repeats, starting

        register_job(starting.start_due, queue=SCHEDULES, list_waiting=jobs.list_starts)
        register_job(repeats.end_repeat, queue=SCHEDULES, list_waiting=jobs.list_ends)
        register_job(notifying.send, queue=NOTICES, list_waiting=jobs.list_notices)
        register_job(stored.store_verdict, queue=SCHEDULES, list_waiting=stored.list_unstored)
