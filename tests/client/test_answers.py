"""The addresses that the client asks are those of the schema that is checked in."""

import json
from pathlib import Path
from typing import Any

import yaml

from benchbench.client import Client
from tests.client.scripted import scripted

CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
SCHEMA = yaml.load(CHECKED_IN.read_text(encoding="utf-8"), yaml.CSafeLoader)


def test_a_model_judges_at_the_addresses_of_the_schema() -> None:
    answers: list[Any] = [(200, {}), (202, {}), (201, {"size": 30}), (200, {"judges": []}), (200, {})]
    with scripted(*answers) as site:
        client = Client(site.address)
        client.llm_cost("r", "ollama:llama3", most=5)
        client.judge_by_llm("r", "ollama:llama3")
        client.draw_calibration_sample("r", 30)
        assert client.llm_judges("r") == []
        client.verdicts("r", llm="ollama:llama3")
        asked = [(method, path.partition("?")[0]) for method, path, _, _ in site.asked]
        bodies = [json.loads(content) for _, _, _, content in site.asked if content]
        keyed = ["idempotency-key" in headers for _, _, headers, _ in site.asked]
    for method, path in asked:
        assert method.lower() in SCHEMA["paths"][path.replace("/r/", "/{round_id}/")]
    assert bodies == [{"llm": "ollama:llama3", "most": 5}, {"llm": "ollama:llama3", "most": None}, {"size": 30}]
    assert keyed == [False, True, True, False, False]
