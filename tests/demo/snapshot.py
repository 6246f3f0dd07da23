"""The source of the demo's collection: the documentation that every Python carries, as gzipped JSON Lines.

    python -m tests.demo.snapshot apps/demo/data/python-docs.jsonl.gz

A document is one module, class, function or language topic. The snapshot is committed, because docstrings change with
Python's patch version and the judgments beside it were made on these texts. Two runs of one Python write equal bytes.
"""

import argparse
import builtins
import gzip
import importlib
import inspect
import json
import platform
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from pydoc_data.topics import topics
from types import ModuleType
from typing import Any

MODULES = """
    builtins abc argparse array ast asyncio atexit base64 bisect calendar collections collections.abc concurrent.futures
    configparser contextlib contextvars copy cProfile csv dataclasses datetime decimal difflib email email.message
    email.utils enum fnmatch fractions functools gc getpass glob graphlib gzip hashlib heapq hmac html html.parser
    http.client http.server importlib importlib.metadata inspect io itertools json logging logging.config
    logging.handlers math mimetypes multiprocessing operator os os.path pathlib pdb pickle platform pprint queue random
    re secrets shelve shlex shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess sys
    tarfile tempfile textwrap threading time timeit tomllib traceback tracemalloc types typing unicodedata unittest
    unittest.mock urllib.error urllib.parse urllib.request uuid venv warnings weakref webbrowser xml.etree.ElementTree
    zipfile zlib zoneinfo
"""

PICKED = {
    "abc": "ABC ABCMeta abstractmethod",
    "argparse": """Action ArgumentDefaultsHelpFormatter ArgumentError ArgumentParser BooleanOptionalAction FileType
        Namespace RawDescriptionHelpFormatter""",
    "ast": "NodeTransformer NodeVisitor dump get_docstring literal_eval parse walk",
    "asyncio": """Barrier BoundedSemaphore Condition Event Future Lock PriorityQueue Protocol Queue Runner Semaphore
        StreamReader StreamWriter Task Timeout as_completed create_task ensure_future gather get_event_loop
        get_running_loop open_connection run run_coroutine_threadsafe shield sleep start_server timeout to_thread wait
        wait_for""",
    "base64": "b16encode b32encode b64decode b64encode b85encode urlsafe_b64decode urlsafe_b64encode",
    "calendar": "Calendar HTMLCalendar TextCalendar leapdays monthrange weekday",
    "collections.abc": "Generator Mapping MutableMapping MutableSequence Sequence Set",
    "configparser": """BasicInterpolation ConfigParser DuplicateOptionError DuplicateSectionError ExtendedInterpolation
        MissingSectionHeaderError RawConfigParser SectionProxy""",
    "csv": "Dialect DictReader DictWriter Sniffer field_size_limit list_dialects reader register_dialect writer",
    "difflib": "Differ HtmlDiff SequenceMatcher context_diff get_close_matches ndiff unified_diff",
    "email.utils": "format_datetime formataddr formatdate getaddresses make_msgid parseaddr",
    "enum": "Enum EnumMeta Flag IntEnum IntFlag StrEnum auto unique",
    "gc": "collect freeze get_objects get_referrers set_debug set_threshold",
    "hashlib": "blake2b file_digest md5 new pbkdf2_hmac sha1 sha256 sha512",
    "http.server": "BaseHTTPRequestHandler HTTPServer SimpleHTTPRequestHandler ThreadingHTTPServer",
    "importlib.metadata": "Distribution entry_points files metadata packages_distributions requires version",
    "inspect": """Parameter Signature cleandoc getattr_static getdoc getfile getmembers getmodule getmro getsource
        getsourcelines isclass iscoroutinefunction isfunction isgenerator ismethod
        signature stack trace unwrap""",
    "io": "BufferedReader BufferedWriter BytesIO FileIO StringIO TextIOWrapper",
    "logging": """FileHandler Filter Formatter Handler LogRecord Logger LoggerAdapter NullHandler StreamHandler
        addLevelName basicConfig captureWarnings critical debug error exception getLevelName getLogger info warning""",
    "logging.config": "dictConfig fileConfig listen stopListening",
    "logging.handlers": """MemoryHandler QueueHandler QueueListener RotatingFileHandler SMTPHandler
        SocketHandler SysLogHandler TimedRotatingFileHandler WatchedFileHandler""",
    "math": "ceil comb copysign dist floor fsum hypot isclose isfinite isinf log modf perm prod remainder trunc",
    "mimetypes": "MimeTypes add_type guess_extension guess_type",
    "multiprocessing": "Array Manager Pool active_children get_logger log_to_stderr",
    "os": """DirEntry access chdir chmod chown cpu_count execv fork fspath get_terminal_size getcwd getenv
        getlogin getpid getppid isatty kill link listdir makedirs mkdir nice open pipe remove rename
        replace rmdir scandir stat symlink system times truncate umask urandom utime waitpid walk""",
    "os.path": """commonpath exists expanduser expandvars getatime getctime getmtime join realpath samefile split
        splitdrive splitext""",
    "platform": "machine node platform processor python_version system",
    "random": """Random SystemRandom choice choices gauss randint random randrange sample seed shuffle
        uniform""",
    "shutil": """chown copy copy2 copyfile copyfileobj copymode copystat copytree disk_usage get_terminal_size
        ignore_patterns make_archive move rmtree unpack_archive which""",
    "re": "Match Pattern compile error escape findall finditer fullmatch match search split sub subn",
    "shelve": "Shelf open",
    "signal": "alarm default_int_handler getsignal setitimer signal strsignal",
    "smtplib": "SMTP SMTPAuthenticationError SMTPRecipientsRefused SMTPSenderRefused SMTPServerDisconnected SMTP_SSL",
    "socket": """create_connection create_server getaddrinfo getdefaulttimeout getfqdn gethostbyaddr gethostbyname
        getservbyname inet_aton setdefaulttimeout socket socketpair""",
    "sqlite3": "Blob Connection Cursor connect register_adapter register_converter",
    "ssl": "SSLContext SSLObject SSLSocket create_default_context get_server_certificate match_hostname",
    "statistics": """NormalDist correlation covariance fmean geometric_mean linear_regression mean median
        mode multimode pstdev pvariance quantiles stdev variance""",
    "struct": "Struct calcsize iter_unpack pack unpack",
    "sys": """exc_info excepthook exception exit getdefaultencoding getfilesystemencoding getrecursionlimit getrefcount
        getsizeof intern setprofile setrecursionlimit setswitchinterval settrace unraisablehook""",
    "threading": """Barrier BoundedSemaphore Condition Event Lock RLock Semaphore Thread Timer active_count
        current_thread enumerate excepthook get_ident main_thread stack_size""",
    "time": """asctime ctime gmtime localtime mktime monotonic perf_counter process_time sleep strftime strptime
        struct_time time tzset""",
    "traceback": """FrameSummary StackSummary TracebackException extract_stack extract_tb format_exception
        format_exception_only format_tb print_exc print_exception print_stack print_tb walk_tb""",
    "tomllib": "load loads",
    "tracemalloc": "Snapshot Statistic get_traced_memory start take_snapshot",
    "types": "CodeType FunctionType GenericAlias MappingProxyType ModuleType SimpleNamespace TracebackType new_class",
    "typing": """Annotated Any Generic NamedTuple NewType ParamSpec Protocol TypeVar TypeVarTuple TypedDict assert_never
        assert_type cast dataclass_transform final get_args get_origin get_type_hints no_type_check overload reveal_type
        runtime_checkable""",
    "unicodedata": "category lookup name normalize numeric",
    "unittest": """IsolatedAsyncioTestCase SkipTest TestCase TestLoader TestResult TestSuite
        TextTestRunner main""",
    "urllib.parse": """parse_qs parse_qsl quote quote_plus unquote unquote_plus urldefrag urlencode urljoin urlparse
        urlsplit urlunparse urlunsplit""",
    "urllib.request": "HTTPRedirectHandler Request build_opener getproxies url2pathname urlopen urlretrieve",
    "uuid": "UUID getnode uuid1 uuid4 uuid5",
    "warnings": "catch_warnings filterwarnings formatwarning simplefilter warn",
    "webbrowser": "get open open_new_tab",
    "xml.etree.ElementTree": """Comment ElementTree QName XML XMLPullParser canonicalize indent iterparse parse
        register_namespace tostring""",
    "zipfile": "Path ZipFile ZipInfo is_zipfile",
}
"""Modules with many specialities, and the part of each that most programmers meet; of the others, all is taken."""

METHODS_OF = ("builtins.str", "builtins.dict", "builtins.list", "pathlib.PurePath", "pathlib.Path")
"""Types whose methods programmers look up by themselves: each method is a document, besides its line in the type's."""

MIN_CHARACTERS = 80
"""Shorter documents say little more than their title. Of `builtins` all are kept: exceptions have short docstrings."""

Document = dict[str, Any]


def collect() -> Iterator[Document]:
    """Yields the documents in the order of MODULES, then the topics; their ids are unique."""
    seen: set[int] = set()
    for module_name in MODULES.split():
        module = importlib.import_module(module_name)
        members = list(_public_members(module))
        picked = PICKED.get(module_name, "").split()
        if text := _module_text(module, members):
            yield _document(module_name, "module", module_name, text)
        for name, thing in members:
            # A thing with two names (bisect and bisect_right), or shown by two modules, is one document: the first.
            if id(thing) not in seen and (not picked or name in picked):
                seen.add(id(thing))
                yield from _member_documents(module_name, name, thing, wanted=name in picked)
    yield from _topic_documents()


def write(documents: Iterable[Document], path: Path) -> int:
    """Writes the documents to `path` in the order of their ids and returns their number."""
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in sorted(documents, key=lambda each: each["_id"])]
    # Neither the time nor the file's name goes into the header, so equal documents make equal bytes.
    path.write_bytes(gzip.compress("".join(lines).encode(), compresslevel=9, mtime=0))
    return len(lines)


def _public_members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The classes and functions a module offers: those it exports, or, where it does not say, those made in it."""
    exported = getattr(module, "__all__", None)
    things = {name: getattr(module, name, None) for name in exported or dir(module) if not name.startswith("_")}
    # A thing's own name comes before its aliases: array.array before array.ArrayType.
    aliases = {name for name, thing in things.items() if getattr(thing, "__name__", None) != name}
    for name in sorted(things, key=lambda name: (name in aliases, name)):
        thing = things[name]
        home = getattr(thing, "__module__", None)
        own = exported or module is builtins or home in (None, module.__name__, f"_{module.__name__}")
        if own and (inspect.isclass(thing) or inspect.isroutine(thing)):
            yield name, thing


def _member_documents(module_name: str, name: str, thing: Any, *, wanted: bool) -> Iterator[Document]:
    title = name if module_name == "builtins" else f"{module_name}.{name}"
    is_class = inspect.isclass(thing)
    text = _class_text(name, thing) if is_class else _function_text(name, thing)
    if len(text) >= MIN_CHARACTERS or (text and (wanted or module_name == "builtins")):
        yield _document(title, "class" if is_class else "function", module_name, text)
    if f"{module_name}.{name}" in METHODS_OF:
        for method_name, method in _public_methods(thing):
            yield _document(f"{title}.{method_name}", "function", module_name, _function_text(method_name, method))


def _public_methods(owner: type) -> Iterator[tuple[str, Any]]:
    """The documented methods and properties that a class defines itself."""
    for name, attribute in sorted(vars(owner).items()):
        if not name.startswith("_") and (callable(attribute) or isinstance(attribute, classmethod | property)):
            bound = attribute if isinstance(attribute, property) else getattr(owner, name)
            if _docstring(bound):
                yield name, bound


def _topic_documents() -> Iterator[Document]:
    """One document a page of `pydoc_data.topics`; "if" and "else" are the same page."""
    keys = {page: key for key, page in sorted(topics.items())}
    for page, key in keys.items():
        heading, _underline, body = page.split("\n", 2)
        yield _document(f"topic.{key}", "topic", "pydoc_data.topics", body, title=heading)


def _module_text(module: ModuleType, members: Iterable[tuple[str, Any]]) -> str:
    return _join(_docstring(module), _summaries("Contents:", members))


def _class_text(name: str, thing: type) -> str:
    return _join(_signature(name, thing), _docstring(thing), _summaries("Methods:", _public_methods(thing)))


def _function_text(name: str, thing: Any) -> str:
    """Signature and docstring; empty without a docstring, since a bare signature explains nothing."""
    docstring = _docstring(thing)
    return _join(_signature(name, thing), docstring) if docstring else ""


def _docstring(thing: Any) -> str:
    """A thing's own docstring: `inspect.getdoc` would repeat the base class's under every heir that has none."""
    docstring = thing.__doc__
    return inspect.cleandoc(docstring) if isinstance(docstring, str) else ""


def _signature(name: str, thing: Any) -> str:
    try:
        signature = f"{name}{inspect.signature(thing)}"
    except (TypeError, ValueError):  # some built-in callables have none to show
        return ""
    # A "<" is the repr of a default that has no literal form, often with its memory address.
    return "" if "<" in signature else signature


def _summaries(heading: str, members: Iterable[tuple[str, Any]]) -> str:
    """One line a member: its name and the first line of its docstring; nothing where none has a docstring."""
    lines = [f"{name}: {docstring.splitlines()[0]}" for name, thing in members if (docstring := _docstring(thing))]
    return "\n".join([heading, *lines]) if lines else ""


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _document(name: str, kind: str, module_name: str, text: str, title: str | None = None) -> Document:
    uri = f"python:{name}"
    clean = re.sub(r" at 0x[0-9A-Fa-f]+", "", text).strip()
    metadata = {"kind": kind, "module": module_name}
    return {"_id": uri, "uri": uri, "title": title or name, "text": clean, "metadata": metadata}


def main(arguments: list[str] | None = None) -> None:
    """The command line: one argument, the file to write."""
    parser = argparse.ArgumentParser(description="Writes this Python's documentation as gzipped JSON Lines.")
    parser.add_argument("out", type=Path, help="file to write, such as python-docs.jsonl.gz")
    path = parser.parse_args(arguments).out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of modules and names that a later Python drops
        count = write(collect(), path)
    sys.stdout.write(f"{count} documents of Python {platform.python_version()} written to {path}\n")


if __name__ == "__main__":
    main()
