"""Pages and commands of benchmarks, evaluations, gates and schedules. It owns no tables: `apps.records` does."""
