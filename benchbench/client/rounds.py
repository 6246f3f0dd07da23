"""Answers about judging rounds, field by field, as in docs/openapi.yaml.

Ids of rounds and runs (UUIDs) and times (ISO 8601, UTC) are strings; those of items are whole numbers.
"""

from typing import Literal, TypedDict


class ScaleGrade(TypedDict):
    grade: int
    name: str
    description: str


class Round(TypedDict):
    id: str
    name: str
    owner_id: int | None
    mapping_id: str
    dataset_version: int
    run_ids: list[str]
    judges: list[str]
    state: Literal["open", "closed"]
    order: Literal["depth", "random", "decisive", "queries"]
    measure: str
    depth: int
    budget: int | None
    uniform_share: float
    seed: int
    scale: list[ScaleGrade]
    guidelines: str
    overlap: float
    overlap_judges: int
    blind: bool
    item_count: int
    pool_size: int
    goes_on: bool
    answered_at: str | None
    created_at: str
    closed_at: str | None
    closed_version: int | None


class Given(TypedDict):
    """What a judge said of an item."""

    item_id: int
    judge: str
    kind: Literal["grade", "skip", "cant_tell"]
    grade: int | None
    note: str
    seconds: float | None
    graded_at: str


class Item(TypedDict):
    """A query and a document, without run, rank or score."""

    item_id: int
    query_key: str
    query_text: str
    expected_answer: str
    query_notes: str
    document_external_id: str
    document_title: str
    document_uri: str
    passage: str
    passage_start: int
    text: str
    text_is_cut: bool
    grade: Given | None
    others: list[Given]


class Handed(TypedDict):
    """Items that you hold. Where `hands_out` is false no further one comes."""

    items: list[Item]
    is_open: bool
    answered_at: str | None
    hands_out: bool


class Judge(TypedDict):
    judge: str
    graded: int
    skipped: int
    cant_tell: int
    seconds_each: float | None
    seconds_left: float | None
    last_at: str | None


class Pair(TypedDict):
    """Two runs; differences are first − second."""

    first_run_id: str
    second_run_id: str
    least: float
    greatest: float
    certain: int | None
    difference: float
    spread: float
    outcome: int
    probability: float
    settled: bool


class Question(TypedDict):
    settled: bool
    certain: bool
    probability: float
    best_run_ids: list[str]
    winner_run_id: str | None
    judged: int
    holes: int
    queries: int
    more: int | None
    more_at_most: int | None
    reason: str | None
    pairs: list[Pair]


class State(TypedDict):
    done: int
    wanted: int
    waiting_for_adjudication: int
    judges: list[Judge]
    is_open: bool
    hands_out: bool
    answered_at: str | None
    sentence: str
    grades: int
    counted_grades: int
    is_current: bool
    renewed_at: str
    sample_size: int
    inclusion_probability: float
    question: Question | None


class Closed(TypedDict):
    version: int | None
    judgments: int
    split: int
    outdated: int
    judged: int
    sentence: str


class LLMCost(TypedDict):
    """What judging by a model would take, about."""

    judge: str
    left: int
    answers: int
    tokens_in: int
    tokens_out: int
    seconds: float | None
    sentence: str


class LLMStarted(TypedDict):
    judge: str
    operation_uuid: str


class Sample(TypedDict):
    size: int


class Bias(TypedDict):
    """The model's grades of the pairs to which people gave `grade`: their mean less it."""

    grade: int
    items: int
    mean: float | None
    mean_low: float | None
    mean_high: float | None


class CalibrationFigures(TypedDict):
    """The model's grades against people's; `counts` has a row for each grade of people."""

    alpha: float | None
    alpha_low: float | None
    alpha_high: float | None
    bias: list[Bias]
    overall_bias: float | None
    overall_bias_low: float | None
    overall_bias_high: float | None
    kappa: float | None
    scale: list[int]
    counts: list[list[int]]
    tau: float | None
    values: float | None
    rise: float | None
    queries: int


class Calibration(TypedDict):
    """Without `figures` it says in `why_not` why there are none."""

    size: int
    waiting: int
    used: int
    cant_tell_people: int
    cant_tell_model: int
    is_stale: bool
    why_not: str | None
    warnings: list[str]
    figures: CalibrationFigures | None


class LLMJudge(TypedDict):
    id: str
    name: str
    llm: str
    revision: str
    prompt_version: str
    most: int | None
    graded: int
    cant_tell: int
    left: int
    sentence: str
    calibration: Calibration


class MixedPair(TypedDict):
    """Two runs under a policy; the difference is first − second."""

    first_run_id: str
    second_run_id: str
    difference: float
    low: float
    high: float
    simultaneous_low: float | None
    simultaneous_high: float | None
    p_adjusted: float
    significant: bool


class PolicyVerdict(TypedDict):
    """The verdict under one policy; without one it says in `why_not` why."""

    policy: Literal["human", "human + llm", "corrected"]
    meaning: str
    sentence: str
    why_not: str | None
    best_run_ids: list[str]
    queries: int
    judged: int
    by_model: int
    holes: int
    sampled: int
    gain: float | None
    estimand: str | None
    pairs: list[MixedPair]


class Verdicts(TypedDict):
    judge: str | None
    measure: str
    warnings: list[str]
    verdicts: list[PolicyVerdict]
