"""Every reader and parser that a request reaches takes time linear in its input, and less than a second.

The readers are found in the source, by their names and by what they take: a new one fails `test_every_reader_is_tried`
until it is added to a registry that is tried here, to TEXTS or, with a reason, to ELSEWHERE.
"""

import ast
import contextlib
import json
import sys
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from django.utils.text import smart_split

from apps.collections.sources import open_source
from apps.datasets.formats.reading import detect, read_dataset
from apps.datasets.formats.registry import FORMATS
from apps.datasets.records import DOC_REF_KEYS
from apps.engines.answers import parse_body
from apps.experiments.external.reports import yield_run
from apps.judging.llm.prompting import read_answer
from apps.judging.scales import LONGEST_GUIDELINES
from apps.mappings.references import InvalidReferenceError, read_reference
from apps.results.triage.causes import read_cause
from apps.retrieval.analysis.analyzers import build_analyzer
from apps.retrieval.forms import split_lines
from apps.retrieval.grids import ENCODER_EXAMPLE, read_encoder, read_strategy
from apps.retrieval.strategies.lod import parse_picks
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.schedules.times import find_next_time
from benchbench import markup
from benchbench.errors import BenchbenchError, strip_folders
from benchbench.files.experiment import read_experiment
from benchbench.files.trec import read_topics
from benchbench.ir.measures import Measure
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.axes.kinds import parse_integers, parse_switch, split_commas
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.labels import shorten_model
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.matrix import LONGEST_VALUE, Matrix
from benchbench.ir.planning.query_text import QueryText
from benchbench.ir.profiles import Profile
from benchbench.markup import html_is_slow
from benchbench.reading import calls, strict_json, strict_yaml
from benchbench.reading.ids import parse_uuid
from benchbench.site.lengths import LONGEST_TEXT
from benchbench.site.reading import SMALL_BYTES
from benchbench.texts import languages, words
from benchbench.texts.guessing import guess_language
from tests.checkout import CHECKOUT
from tests.datasets.tool_samples import LTR_OLD, LTR_TITLED, RRE, SNAPSHOT
from tests.datasets.valid import DOCUMENT, VALID
from tests.files.samples import CLASSIC_TOPICS, COMPACT_EXPERIMENT, RUN, XML_TOPICS, write_file
from tests.growth import find_growth_faults
from tests.hostile import yield_hostile, yield_hostile_values

LONGEST = 2**16  # characters; a small upload may have four times as many, which take four times as long
MOST_SECONDS = LONGEST / SMALL_BYTES
VERBS = ("read", "parse", "split", "sniff", "decode", "detect", "normal", "fold", "expand", "excerpt", "mark_words")
VERBS += ("shorten", "render_markdown", "canonicalize")

# Files by name: the reader, a valid text, and further files that it needs.
DOCUMENTS = {
    "corpus.jsonl": '{"_id": "d1", "title": "Pear", "text": "A pear.", "uri": "u", "metadata": {"a": 1}}\n',
    "a.csv": "id,name,body,price\nd1,Pear,A pear.,2\n",
    "a.ndjson": '{"index": {"_id": "d1"}}\n{"name": "Pear", "body": "A pear.", "tags": ["a"], "price": 2}\n',
    "a.trec": "<DOC>\n<DOCNO> d1 </DOCNO>\n<HEADLINE>A</HEADLINE>\n<TEXT>\n<P>A &amp; pear.\n</TEXT>\n</DOC>\n",
    "wiki.trec": '<doc id="1" url="u" title="A">\nA pear.\n</doc>\n',
    "solr.xml": '<add><doc><field name="id">1</field><field name="text">A pear.</field></doc></add>',
    "feed.xml": "<?xml version='1.0'?><!-- x --><rss><item><guid>1</guid><title>A &lt; b</title><link>u</link>"
    "<description><![CDATA[<p>A pear.]]></description></item></rss>",
    "answer.json": '{"hits": {"total": {"value": 2}, "hits": [{"_id": "1", "_source": {"text": "A pear."}}]}}',
    "a.md": "# One\n\ntext\n\n## Two ##\n```\ncode\n```\n",
    "a.html": "<title>A</title><h1 id='x'>One &amp; two</h1><p class=\"c\">text<!-- no --><h2>Two</h2>",
    "a.txt": "A pear.",
}
RUNS = {"trec": ("a.run", "q1 Q0 d1 1 0.5 tag\n"), "flowbaby": ("run.json", json.dumps(RUN))}
RUNS |= {"table": ("a.csv", "query,doc,rank,score\nq1,d1,1,0.5\n")}
RUNS |= {"quepid": ("snapshot.json", json.dumps(SNAPSHOT))}
SCALE = [{"grade": 0, "name": "no"}, {"grade": 1, "name": "yes"}]
NOW = datetime(2026, 11, 28, tzinfo=UTC)
QUERY = "red (fruit)"
RULES = "floors: {nDCG@10: 0.5}\nmust_not_fail:\n- queries: [q1]\n  relevant_in_top: 5\n"
# Words of each way to divide texts, in all scripts that have code of their own; which is the same for each language, so
# that of others the analyzer reads its own script alone, with marks that it folds.
SCRIPTS = "İxB's É-٣.é 漢 ㅎㅏค้ अंा"
ANALYZED = {
    ("german", "unicode"): SCRIPTS,
    ("arabic", "code"): SCRIPTS,
    ("english", "plain"): SCRIPTS,
    ("english", "english"): SCRIPTS,
    ("turkish", "code"): "İIı'da",
    ("hindi", "unicode"): "क्षि अंा",
    ("french", "unicode"): "l'É-é",
    ("persian", ""): "می\u200cروم ي",
    ("vietnamese", ""): "Đườ ng",
    ("malayalam", ""): "ക്ഷി",
}
# Readers of texts: what is called, a valid text, and the most characters that reach it.
TEXTS = {
    "benchbench.reading.strict_json:parse": (
        lambda text: strict_json.parse(text, location="The body"),
        '{"a": [1.5, "b\\u0061"]}',
        LONGEST,
    ),
    "benchbench.reading.strict_json:decode": (
        lambda text: strict_json.decode(text.encode(), location="The body"),
        "é",
        LONGEST,
    ),
    "benchbench.reading.strict_yaml:parse": (
        lambda text: strict_yaml.parse(text, location="a.yaml"),
        COMPACT_EXPERIMENT,
        LONGEST,
    ),
    "benchbench.reading.calls:split_calls": (calls.split_calls, "nDCG@10, RBP(p=0.8, rel=1)", LONGEST),
    "benchbench.reading.calls:read_options": (
        lambda text: call(calls.read_options, text, expects="an option"),
        "size=500, overlap=50",
        LONGEST,
    ),
    "benchbench.reading.ids:parse_uuid": (lambda text: call(parse_uuid, text), "0-0", LONGEST),
    "apps.verdicts.gates.rules:read_rules": (read_rules, RULES, LONGEST),
    "apps.verdicts.schedules.times:find_next_time": (lambda text: find_next_time(text, NOW), "0 3 * * 1-5", 100),
    "apps.retrieval.grids:read_encoder": (read_encoder, ENCODER_EXAMPLE, LONGEST_TEXT),
    "apps.retrieval.grids:read_strategy": (read_strategy, "flat(size=500, overlap=50)", LONGEST_TEXT),
    "apps.retrieval.forms:split_lines": (split_lines, "flat\nlod_embed", LONGEST),
    "benchbench.texts.words:fold_spelling": (words.fold_spelling, "Pear  é", LONGEST),
    "benchbench.ir.planning.axes.kinds:split_commas": (split_commas, "1, 2", LONGEST),
    "benchbench.ir.planning.axes.kinds:parse_integers": (
        lambda text: call(parse_integers, text),
        "1, 2",
        LONGEST,
    ),
    "benchbench.ir.planning.axes.kinds:parse_switch": (parse_switch, "both", LONGEST),
    "benchbench.ir.measures.measure:Measure.parse": (Measure.parse, "nDCG(dcg='exp-log2')@10", LONGEST),
    "benchbench.markup:excerpt": (
        lambda text: (markup.excerpt(text, QUERY), markup.excerpt(QUERY, text)),
        "red",
        LONGEST,
    ),
    "benchbench.markup:mark_words": (lambda text: markup.mark_words(text, QUERY), "red 漢字", LONGEST),
    "benchbench.markup:mark_words of a long query": (
        lambda text: markup.mark_words(QUERY, text),
        "red 漢字",
        LONGEST,
    ),
    "benchbench.markup:text": (markup.text, "a|b_c](", LONGEST),
    "benchbench.markup:code": (markup.code, "a`b", LONGEST),
    "benchbench.markup:render_markdown": (
        markup.render_markdown,
        "# A\n\n* [b](c 'd') **e** _f_ `g`\n\n> |h|i|\n> |-|-|\n\n<j>&amp;\\*",
        LONGEST_GUIDELINES,
    ),
    "benchbench.markup:decode_entities": (markup.decode_entities, "&amp;&#65;&#x41;", LONGEST),
    "benchbench.markup:shorten_references": (markup.shorten_references, "&#00065;", LONGEST),
    "benchbench.texts.words:fold": (words.fold, "ﬁ é漢", LONGEST),
    "benchbench.texts.words:normalize": (lambda text: words.normalize(text, "NFKC"), "ﬁ é漢", LONGEST),
    **{
        f"the analyzer of {language} by {way or 'its usual way'}": (
            build_analyzer(language, way).analyze,
            sample,
            LONGEST,
        )
        for (language, way), sample in ANALYZED.items()
    },
    "benchbench.texts.guessing:guess_language": (lambda text: guess_language([text]), "é漢 the", LONGEST),
    "benchbench.texts.languages:find_language": (languages.find_language, "de", LONGEST),
    "benchbench.texts.words:split_words": (words.split_words, "pear é 漢字 ㅎㅏ", LONGEST),
    "benchbench.ir.planning.lexical:Lexical.parse": (
        lambda text: call(Lexical.parse, text),
        "bm25(k1=0.9|1.2, b=0.4)",
        LONGEST_VALUE,
    ),
    "benchbench.ir.planning.ann:Ann.parse": (lambda text: call(Ann.parse, text), "faiss:hnsw(m=32)", LONGEST_VALUE),
    "benchbench.ir.planning.engine:EngineSetting.parse": (EngineSetting.parse, 'shop(boost=2, f="t,x")', LONGEST_VALUE),
    "benchbench.ir.planning.query_text:parse_texts": (
        QueryText.parse("multi(2)").parse_texts,
        "<think>a</think>\n1. red\n2) blue:\n- green",
        LONGEST,
    ),
    "benchbench.ir.planning.labels:shorten_model": (shorten_model, "sentence-transformers/all", LONGEST),
    "benchbench.ir.profiles:Profile.parse": (Profile.parse, "overall", LONGEST),
    "apps.results.triage.causes:read_cause": (read_cause, "any", LONGEST),
    "apps.mappings.references:read_reference": (
        lambda text: [call(read_reference, {key: text}) for key in DOC_REF_KEYS],
        "http://a/b",
        LONGEST,
    ),
    "apps.judging.llm.prompting:read_answer": (
        lambda text: read_answer(text, SCALE),
        '{"grade": 1, "reason": "r"}',
        LONGEST,
    ),
    "apps.retrieval.strategies.lod:parse_picks": (
        lambda text: parse_picks(text, ["sec_1", "a"]),
        "sec_1, a/b",
        LONGEST,
    ),
    "apps.engines.answers:parse_body": (lambda text: parse_body(text.encode()), '{"hits": []}', LONGEST),
    "benchbench.errors:strip_folders": (strip_folders, "/a/b/c.bin: no", LONGEST),
    "django.utils.text:smart_split": (lambda text: list(smart_split(text)), "a 'b c' \"d\"", LONGEST),
}
for _key, _axis in BY_KEY.items():
    TEXTS[f"axis {_key}"] = (
        lambda text, axis=_axis: call(axis.kind.read, text),
        _axis.default_text or 'shop(boost=1|2, a="b")',
        LONGEST_TEXT,
    )
    TEXTS[f"matrix {_key}"] = (
        lambda text, key=_key: Matrix.parse({key: [text], "search_modes": ["hybrid", "engine"]}, max_runs=200),
        _axis.default_text or "hnsw(m=8|16)",
        2 * LONGEST_VALUE,
    )
# Readers of what no request brings.
ELSEWHERE = {
    "apps/engines/declarations.py:read_entries": "a file of the server's administrator; its YAML is tried",
    "apps/execution/defining/matrix_options.py:parse_number": "an option of a command",
    "apps/execution/defining/matrix_options.py:read_option": "an option of a command",
    "apps/experiments/external/reports.py:read_uploaded_run": "calls yield_run, which is tried",
    "apps/records/models/values.py:read_value": "values that this site packed",
    "apps/experiments/reproducing.py:read_definition": "a file of a command; its YAML is tried",
    "apps/collections/languages.py:read_language": "a name, which find_language reads",
    "apps/retrieval/analysis/segmenting.py:split": "texts for an optional package",
    "apps/datasets/formats/catalogue.py:read_catalogue": "an option of a command",
    "apps/retrieval/encoders/model_files.py:read_revision": "files of installed models",
    "apps/retrieval/importing_vectors.py:read_vector_file": "a file of a command",
    "apps/retrieval/search/vectors.py:read_table": "a table of this site",
    "apps/retrieval/stores/filling.py:read_seal": "files of this site",
    "benchbench/catalogue.py:parse_catalogue_id": "an option of a command",
    "benchbench/catalogue.py:read": "an option of a command",
    "benchbench/files/flowbaby.py:read_qrels": "files of a command",
    "benchbench/files/flowbaby_results.py:read_summary": "files of a command",
    "benchbench/scoring/faults.py:read_rows": "files of a command",
    "benchbench/client/tools.py:read_dataset": "answers of a site",
    "benchbench/client/tools.py:read_query": "answers of a site",
    "benchbench/client/tools.py:read_verdict": "answers of a site",
    "benchbench/client/tools.py:shorten": "answers of a site",
    "benchbench/scoring/measuring.py:read_results": "files of a command",
    "benchbench/scoring/measuring.py:read_truth": "files of a command",
    "benchbench/timestamps.py:read_git_sha": "files of the checkout",
    "apps/verdicts/gates/common.py:read_common": "rules that read_rules has read",
}


def call(read, text, **options):
    """Call a reader that says by ValueError what is wrong, as by an error shown to users."""
    with contextlib.suppress(ValueError, InvalidReferenceError):
        read(text, **options)


def yield_file_readers(folder):
    """Yield (name, reader without arguments, file to change) for each file that an upload may hold."""
    for name in FORMATS:
        target = VALID[name](make_folder(folder, name))
        for path in [target] if target.is_file() else sorted(filter(Path.is_file, target.rglob("*"))):
            yield (
                f"dataset {name} {path.name}",
                lambda t=target, n=name: read_dataset(t, format=n, is_upload=True),
                path,
            )
    for name, (file, content) in RUNS.items():
        path = write_file(make_folder(folder, f"run {name}") / file, content)
        yield f"run {name}", lambda p=path, n=name: list(yield_run(p, {"q1", "pear"}, format=n)), path
    for file, content in DOCUMENTS.items():
        parent = make_folder(folder, f"documents {file}")
        path = write_file(parent / file, content)
        target = path if file.endswith((".jsonl", ".trec", ".xml")) else parent
        yield f"documents {file}", lambda t=target: list(open_source(t, uri_prefix="").documents), path
    parent = make_folder(folder, "sectioned documents")
    write_file(parent / "a.json", DOCUMENT)
    write_file(parent / "a.md", "# One\nfirst\n## Two\nsecond\n# Three\nthird\n")
    for path in sorted(parent.iterdir()):
        yield f"sectioned documents {path.name}", lambda: list(open_source(parent).documents), path
    for name, content in (("rre.json", json.dumps(RRE)), ("case.txt", LTR_TITLED), ("old.txt", LTR_OLD)):
        path = write_file(make_folder(folder, f"dataset {name}") / name, content)
        yield f"dataset {name}", lambda p=path: read_dataset(p, format="quepid-ratings", is_upload=True), path
    for name, content in (("classic", CLASSIC_TOPICS), ("xml", XML_TOPICS)):
        path = write_file(make_folder(folder, name) / "topics.txt", content)
        yield f"topics {name}", lambda p=path: read_topics(p), path
    path = write_file(make_folder(folder, "old") / "a.csv", "Frage;Dok;Note;Rating\npear;d1;x;1\n")
    yield "table of an old encoding", lambda p=path: read_old(p), path
    path = write_file(make_folder(folder, "detected") / "a.txt", "q1 0 d1 1\n")
    yield "format", lambda p=path: call(detect, p), path
    path = write_file(make_folder(folder, "experiment") / "e.yaml", COMPACT_EXPERIMENT)
    yield "experiment", lambda: read_experiment(path), path


def read_old(path):
    """Read a table in Windows-1252 with what is written at `path`, as an upload."""
    old = path.with_name("old.csv")
    old.write_bytes(path.read_text().encode("cp1252", "replace").replace(b"pear", b"p\xe9ar"))
    call(read_dataset, old, is_upload=True)


def make_folder(folder, name):
    created = folder / name
    created.mkdir()
    return created


def list_files():
    with tempfile.TemporaryDirectory() as folder:
        return [name for name, _, _ in yield_file_readers(Path(folder))]


@cache
def list_readers():
    """Return (file:name, first line) of the public functions that are named as readers and take a text or a file."""
    hits = {}
    for path in (path for room in ("apps", "benchbench") for path in (CHECKOUT / room).rglob("*.py")):
        name = str(path.relative_to(CHECKOUT))
        if "migrations" in path.parts or "commands" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith(VERBS):
                taken = [each for each in node.args.args if each.arg not in ("self", "cls")]
                kind = ast.unparse(taken[0].annotation).split(" | ")[0] if taken and taken[0].annotation else ""
                if kind in ("str", "bytes", "Path", "object"):
                    hits[f"{name}:{node.name}"] = node.lineno
    return hits


def forget_answers():
    """Empty the caches of readers: one that answers from its cache is not called."""
    for reader in list_readers():
        path, name = reader.split(".py:")
        module = sys.modules.get(path.replace("/", ".").removesuffix(".__init__"))
        if hasattr(function := getattr(module, name, None), "cache_clear"):
            function.cache_clear()


def test_every_reader_is_tried(tmp_path):
    codes = set()

    def note(frame, event, argument):
        if event == "call":
            codes.add(frame.f_code)

    forget_answers()
    sys.setprofile(note)
    try:
        for feed, sample, _ in TEXTS.values():
            with contextlib.suppress(BenchbenchError):
                feed(sample)
        for _, read, _ in yield_file_readers(tmp_path):
            read()
    finally:
        sys.setprofile(None)
    ours = [code for code in codes if code.co_filename.startswith(str(CHECKOUT))]
    called = {f"{Path(code.co_filename).relative_to(CHECKOUT)}:{code.co_name}" for code in ours}
    missed = {name for name in list_readers() if name not in called} - ELSEWHERE.keys()
    assert missed == set(), "\n".join(sorted(missed))
    assert ELSEWHERE.keys() <= list_readers().keys()


@pytest.mark.thorough
@pytest.mark.parametrize("name", TEXTS)
def test_a_parser_takes_time_linear_in_a_text(name):
    feed, sample, longest = TEXTS[name]
    assert find_growth_faults(feed, yield_hostile(sample), longest) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_files())
def test_a_reader_takes_time_linear_in_a_file(name, tmp_path):
    if html_is_slow() and "html" in name:
        pytest.skip("This Python's parser of HTML is quadratic; `check` says so, and uploads of HTML are read apart.")
    read, path = next((read, path) for each, read, path in yield_file_readers(tmp_path) if each == name)
    sample = path.read_text()

    def feed(text):
        path.write_text(text, newline="")
        read()

    produces = list(yield_hostile(sample))
    if path.suffix == ".json":
        produces += yield_hostile_values(json.loads(sample))
    limit = 1.0 if path.suffix == ".yaml" else MOST_SECONDS  # of YAML little more is read
    assert find_growth_faults(feed, produces, LONGEST, max_seconds=limit) == set()
