"""Launching a language model as the judge of a round: cost preview, cap on answers, resumable batches."""

import re
from dataclasses import dataclass
from typing import Annotated

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Avg, Count, F, QuerySet

from apps.judging.handing import load_items
from apps.judging.judges import RoundError, RoundStateError, require_lead, require_open
from apps.judging.llm import prompting
from apps.judging.models import Grade, LLMJudge, Round, RoundItem
from apps.operations.launching import cancel_operation, start_operation
from apps.operations.models import Operation
from apps.records.models import Run
from apps.records.provenance import list_llms
from apps.retrieval.llms.asking import UNKNOWN, find_llm_revision
from apps.retrieval.llms.servers import require_model
from apps.retrieval.models import LLMAnswer
from benchbench.decimals import counted
from benchbench.durations import MIN_SAMPLES, estimate_by_pace

LONGEST_NAME = 150
PRICED = 200  # prompts that are built to estimate the length of all
TIMED = 200  # latest answers of a model that its speed is estimated from
AT_ONCE = 10  # answers per batch
CHARACTERS_PER_TOKEN = 4  # roughly, for English
TOKENS_OUT = 2  # roughly: a digit and the end
# Words in a model's name that mark its family, the family's own name first; derived models belong to it.
FAMILIES = {
    "llama": "llama vicuna alpaca",
    "mistral": "mistral mixtral ministral codestral magistral",
    "gpt": "gpt davinci",
    "gemma": "gemma gemini",
    "qwen": "qwen qwq",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated cost of judging."""

    judge: Annotated[str, "The model with its revision and prompt: the name of its grades."]
    remaining_items: Annotated[int, "Items that it has not judged."]
    answers: Annotated[int, "Answers that it would be asked for under the cap."]
    tokens_in: int
    tokens_out: int
    seconds: Annotated[float | None, "Estimated from its answers so far; null before five."]

    @property
    def sentence(self) -> str:
        """The cost, as a sentence for the reader."""
        if not self.answers:
            return f"{self.judge} has judged every item of the round: nothing is left to ask."
        takes = (
            "the time is unknown because it has not answered yet"
            if self.seconds is None
            else _render_time(self.seconds)
        )
        left_out = self.remaining_items - self.answers
        capped = f" The cap leaves {counted(left_out, 'item')} out." if left_out else ""
        return (
            f"{counted(self.answers, 'answer')} of {self.judge}: about {self.tokens_in:,} tokens in and "
            f"{self.tokens_out:,} out; {takes}. Cached answers cost nothing.{capped}"
        )


def preview(round: Round, llm: str, *, item_limit: int | None = None) -> Cost:
    """Return the estimated cost of judging a round by `llm`. Asks the server only for its revision.

    `llm` is like ollama:llama3. Raises RoundError, RoundStateError, LLMError.
    """
    identity = _check_judge(round, llm, item_limit)
    items = list(list_unjudged(round, identity.name).values_list("pk", flat=True))
    selection = items[:item_limit]
    priced = load_items(selection[:: max(1, len(selection) // PRICED)][:PRICED])
    tokens = [-(-len(prompting.build_prompt(round, item)) // CHARACTERS_PER_TOKEN) for item in priced]
    mean = sum(tokens) / len(tokens) if tokens else 0.0
    return Cost(
        identity.name,
        len(items),
        len(selection),
        int(-(-mean * len(selection) // 1)),
        TOKENS_OUT * len(selection),
        estimate_by_pace(*_load_pace(llm), len(selection)),
    )


@transaction.atomic
def start_judging(round: Round, llm: str, by: User, *, item_limit: int | None = None) -> tuple[LLMJudge, Operation]:
    """Start `llm` on the items that it has not judged, at most `item_limit`; the calibration sample comes first.

    Existing grades remain, and starting again continues a stopped judging. `by` leads the round. Raises RoundError,
    RoundStateError, NotAJudgeError, LLMError, OperationActiveError, QuotaError.
    """
    require_lead(round, by)
    candidate = _check_judge(round, llm, item_limit)
    identity = {"revision": candidate.revision, "prompt_version": candidate.prompt_version}
    judge, _ = LLMJudge.objects.update_or_create(
        round=round,
        name=candidate.name,
        defaults={"llm": llm, "prompt_hash": candidate.prompt_hash, "item_limit": item_limit, **identity},
    )
    items = list(list_unjudged(round, judge.name).values_list("pk", flat=True))
    selection = items[:item_limit]
    if not selection:
        raise RoundError(f"{judge} has judged every item of the round: nothing is left to ask.", field="llm")
    batches = [selection[start : start + AT_ONCE] for start in range(0, len(selection), AT_ONCE)]
    operation = start_operation(
        Operation.Kind.LLM_JUDGING,
        subject_id=round.pk,
        by=by,
        batches=[({"items": item_ids}, len(item_ids)) for item_ids in batches],
        parameters={"judge": str(judge.pk), "left_out": len(items) - len(selection)},
    )
    return judge, operation


def cancel_judging(round: Round, by: User) -> None:
    """Cancel the judging of a round by a model; its grades remain. Raises RoundStateError, NotAJudgeError."""
    require_lead(round, by)
    operation = Operation.active_on(round)
    if operation is None:
        raise RoundStateError(f'No model judges the round "{round}" now: there is nothing to cancel.')
    cancel_operation(operation)


def build_judge(round: Round, llm: str) -> LLMJudge:
    """Return the unsaved judge that a model would be now, with its revision and the prompt.

    Its revision is `asking.UNKNOWN` if its server reports none or does not answer.
    """
    server, _, model = llm.partition(":")
    revision, prompt = find_llm_revision(server, model), prompting.hash_prompt(round)
    name = f"{llm}@{revision[:12]} prompt {prompting.VERSION}-{prompt[:8]}"
    return LLMJudge(
        round=round, name=name, llm=llm, revision=revision, prompt_version=prompting.VERSION, prompt_hash=prompt
    )


def list_changes(judge: LLMJudge) -> list[str]:
    """Return the changes since a judge was started, as clauses; empty if its grades are still valid for it.

    A server that does not answer, or no longer reports a revision, does not count as a change.
    """
    now = build_judge(judge.round, judge.llm)
    changes = []
    if now.revision not in (judge.revision, UNKNOWN):
        changes.append(f"{judge.llm} has another revision ({now.revision[:12]})")
    if now.prompt_version != judge.prompt_version:
        changes.append(f"the prompt has version {now.prompt_version} now")
    elif now.prompt_hash != judge.prompt_hash:
        changes.append("the scale or the guidelines of the round changed")
    return changes


def list_unjudged(round: Round, judge_name: str) -> QuerySet[RoundItem]:
    """Return the items that a model has not judged: the calibration sample first, then in the order of the round."""
    judged = Grade.objects.filter(source=Grade.Source.LLM, judge_name=judge_name, item__round=round).values("item")
    left = RoundItem.objects.filter(round=round).exclude(pk__in=judged)
    return left.order_by(F("calibration__place").asc(nulls_last=True), "place")


def _load_pace(llm: str) -> tuple[float | None, int]:
    """Return the mean seconds of a model's latest answers as a judge, or of all if these are few, and their number."""
    server, _, model = llm.partition(":")
    answers = LLMAnswer.objects.filter(provider=server, model=model).order_by("-id")
    for rows in (answers.filter(parameters__max_tokens=prompting.MAX_TOKENS), answers):
        facts = rows.values("ms")[:TIMED].aggregate(mean=Avg("ms"), samples=Count("ms"))
        if facts["samples"] >= MIN_SAMPLES:
            return facts["mean"] / 1000, facts["samples"]
    return None, 0


def _check_judge(round: Round, llm: str, item_limit: int | None) -> LLMJudge:
    """Return the unsaved judge that `llm` would be now. Raises an error for invalid options and unknown models."""
    require_open(round)
    if len(llm) > LONGEST_NAME or not all(llm.partition(":")):
        raise RoundError(
            "Name a model as SERVER:MODEL, such as ollama:llama3; the server must be in the settings.", field="llm"
        )
    if item_limit is not None and item_limit < 1:
        raise RoundError("The cap must be at least 1 answer. Leave it out to judge every item.", field="item_limit")
    if len(round.guidelines) > prompting.LONGEST_GUIDELINES:
        raise RoundError(
            f"The guidelines have {len(round.guidelines):,} characters, but a model reads at most "
            f"{prompting.LONGEST_GUIDELINES:,}: shorten them.",
            field="guidelines",
        )
    server, _, model = llm.partition(":")
    require_model(server, model)
    return build_judge(round, llm)


def _render_time(seconds: float) -> str:
    return f"about {seconds:,.0f} s" if seconds < 120 else f"about {seconds / 60:,.0f} min"


def find_family(model: str) -> str:
    """Return the family of a model by its name: qwen for `ollama:qwen2.5:7b` and for `Qwen/Qwen3-Reranker-0.6B`."""
    name = model.partition(":")[2] if re.match(r"[\w-]+:", model) else model
    name = name.rpartition("/")[2].lower()
    for family, marks in FAMILIES.items():
        if any(mark in name for mark in marks.split()):
            return family
    letters = re.match(r"[a-z]+", name)
    return letters[0] if letters else name


def check_kinship(judge: LLMJudge, runs: list[Run]) -> list[str]:
    """Return a warning for each run that a model of the judge's own family reranked or rewrote queries for.

    LLM judges favour results of their own family (Panickssery, Bowman and Feng, NeurIPS 2024), so such a run may look
    better than it is.
    """
    family = find_family(judge.llm)
    warnings = []
    for run in runs:
        acts = [f"{model} {act}" for model, act in _list_models(run) if find_family(model) == family]
        if acts:
            warnings.append(
                f'{judge.llm} judges a run that used its own model family, {family}: in "{run}" {" and ".join(acts)}.'
            )
    return warnings


def _list_models(run: Run) -> list[tuple[str, str]]:
    """Return (model, act) for the models that took part in a run's rankings."""
    if run.benchmark.is_external:
        return []
    config = run.configuration
    acts = [(model, "is asked in its search") for model in list_llms(run)]
    if config.rewrites and config.llm:
        acts = [(model, act) for model, act in acts if model != config.llm] + [(config.llm, "rewrites queries")]
    if config.use_reranker and config.reranker:
        acts.append((config.reranker, "reranks"))
    return acts
