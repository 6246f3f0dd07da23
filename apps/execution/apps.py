from django.apps import AppConfig


class ExecutionConfig(AppConfig):
    name = "apps.execution"

    def ready(self) -> None:
        from apps.execution.preparing import proceed
        from apps.execution.tasks import BenchmarkHandler, MeasuringHandler
        from apps.operations.ending import completed
        from apps.operations.handlers import register_handler

        register_handler(BenchmarkHandler())
        register_handler(MeasuringHandler())
        completed.connect(proceed, dispatch_uid="proceed")
