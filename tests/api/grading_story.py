"""The part of the story about grades: two people, then a language model, judge what no one judged."""

from django.contrib.auth.models import User

from tests.api.callers import Caller
from tests.api.recording import Walk
from tests.retrieval.llm_server import ollama_server


def grade(walk: Walk, benchmark: str) -> None:
    """Let two people grade what no one judged, and close their round."""
    lin = Caller(User.objects.create_superuser("lin"))
    runs = [run["id"] for run in walk.caller.get(f"/benchmarks/{benchmark}/results").json()["runs"]]
    scale = [{"grade": 0, "name": "Does not help"}, {"grade": 1, "name": "Helps"}, {"grade": 2, "name": "Answers"}]
    fields = {"name": "What nobody judged", "run_ids": runs, "judges": ["ada", "lin"], "order": "depth", "depth": 3}
    created = walk.ask("POST", "/judging-rounds", fields | {"overlap": 1, "scale": scale})
    path = f"/judging-rounds/{created['id']}"
    walk.ask("PATCH", path, {"guidelines": "A page **answers** if nothing else need be read."})
    walk.ask("GET", path)
    walk.ask("GET", "/judging-rounds", state="open")
    first, second = (item["item_id"] for item in walk.ask("POST", f"{path}/next", {"count": 2})["items"])
    walk.ask("GET", f"{path}/items/{first}")
    messages = {"item_id": first, "grade": 2, "note": "Step by step.", "seconds": 6.5}
    walk.ask("POST", f"{path}/grades", {"grades": [messages]})
    walk.ask("GET", f"{path}/grades")
    walk.caller.post(f"{path}/grades", {"grades": [{"item_id": second, "kind": "cannot_judge"}]})
    walk.ask("POST", f"{path}/grades/undo", {"count": 1})
    walk.caller.post(f"{path}/grades", {"grades": [{"item_id": second, "grade": 1}]})
    walk.ask("POST", f"{path}/grades/remove", {"item_ids": [second]})
    lin.post(f"{path}/grades", {"grades": [{"item_id": first, "grade": 0}]})
    walk.ask("GET", f"{path}/adjudications")
    walk.ask("POST", f"{path}/adjudications", {"item_id": first, "grade": 2})
    walk.ask("DELETE", f"{path}/adjudications/{first}")
    walk.ask("POST", f"{path}/adjudications", {"item_id": first, "grade": 1})
    walk.ask("GET", f"{path}/state")
    walk.ask("GET", f"{path}/agreement")
    walk.ask("POST", f"{path}/close", {"label": "2026-12"})
    spare = walk.caller.post("/judging-rounds", fields | {"overlap": 0, "depth": 10}).json()
    judge_by_model(walk, f"/judging-rounds/{spare['id']}")
    walk.ask("DELETE", f"/judging-rounds/{spare['id']}")


def judge_by_model(walk: Walk, path: str) -> None:
    """Let a language model judge a round, with a sample of it to calibrate it."""
    walk.ask("POST", f"{path}/calibration-sample", {"size": 30})
    with ollama_server():
        walk.ask("POST", f"{path}/llm-judges/preview", {"llm": "ollama:llama3", "item_limit": 30})
        walk.ask("POST", f"{path}/llm-judges", {"llm": "ollama:llama3", "item_limit": 30})
        walk.ask("GET", f"{path}/llm-judges")
        walk.ask("GET", f"{path}/verdicts", llm="ollama:llama3")
