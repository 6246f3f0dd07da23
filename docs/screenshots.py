"""Renew the pictures of the documentation: `make screenshots`.

Makes the demo, and the benchmarks of the tour if there is a BEIR directory of SciFact, on a site of its own
(.benchbench/screenshots), serves it, and takes each picture with Chromium: at a fixed width, in light mode. What cannot
be taken keeps its old picture, and is named at the end.
"""

import argparse
import base64
import os
import re
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
WIDTH, HEIGHT = 1280, 1400
MARGIN = 8
MOST_BYTES = 150_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60_000  # milliseconds
SETTLED = 1_500  # milliseconds in which charts are drawn

# The pixels of a PNG, as the browser reads it: width and bytes of red, green, blue, opacity.
READ_PIXELS = """async (data) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data: bytes } = context.getImageData(0, 0, image.width, image.height);
    let text = "";
    for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
    return [image.width, btoa(text)];
}"""

sys.path.insert(0, str(ROOT))
os.environ.setdefault("BENCHBENCH_DATA_DIR", str(ROOT / ".benchbench" / "screenshots"))
os.environ["DJANGO_SETTINGS_MODULE"] = "benchbench.settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright runs an event loop in this thread


@dataclass(frozen=True)
class Picture:
    """A picture of the parts of a page: the smallest rectangle with every selector's first match; none: the screen."""

    file: str
    path: str
    parts: tuple[str, ...] = ()
    prepare: Callable[[Any], None] = lambda page: None


def make_demo() -> Iterator[Picture]:
    """Run the demo, unless it is there; yield its pictures."""
    from django.core.management import call_command

    from apps.records.models import Benchmark

    if not Benchmark.objects.filter(mapping__dataset__name="Python questions", status="completed").exists():
        call_command("demo", "--no-serve")
    demo = Benchmark.objects.filter(mapping__dataset__name="Python questions").latest("created_at")
    yield Picture("img/results.png", f"/admin/benchmarks/benchmark/{demo.pk}/results/")


def make_tour(scifact: Path, vectors: Path | None) -> Iterator[Picture]:
    """Run the benchmarks of the tour, unless they are there; yield its pictures."""
    from django.core.management import call_command

    from apps.records.models import Baseline, Benchmark, QueryResult
    from apps.verdicts.gates.baselines import approve

    made_before = ("--vectors", str(vectors), "--vectors-model", "all-MiniLM-L6-v2") if vectors else ()
    call_command("import_beir", str(scifact), "--name", "scifact", *made_before)
    run = ("run_benchmark", "scifact", "--modes", "dense,sparse,hybrid", "--wait")
    made = []
    for name, *more in (
        ("Which search?", "--k", "10,100"),
        ("Does reranking pay?", "--rerank", "both", "--rerank-depth", "20"),
    ):
        completed = Benchmark.objects.filter(name=name, status="completed")
        if not completed.exists():
            call_command(*run, *more, "--name", name)
        made.append(completed.latest("created_at"))
    which, reranking = made
    if not Baseline.objects.filter(name="production").exists():
        approve(which.runs.get(config__search_mode="sparse"), name="production", reason="In production.", by=None)
    hybrid, reranked = reranking.runs.filter(config__search_mode="hybrid").order_by("config__use_reranker")
    query = QueryResult.objects.get(run=reranked, query__key="475")
    first, second = (f"/admin/benchmarks/benchmark/{row.pk}/results/" for row in (which, reranking))
    compared, every = (list_compared(row.runs.order_by("run_order")) for row in (which, reranking))
    page = f"/admin/benchmarks/run/{reranked.pk}/"
    board = ("#verdict", ".bb-board")
    yield Picture("tour/verdict.png", first, board)
    yield Picture("tour/comparison.png", compared, ("#verdict", "#differences-of-runs"))
    yield Picture("tour/six-runs.png", second, board)
    yield Picture("tour/differences.png", every, ("#differences-of-runs",))
    yield Picture("tour/choices.png", every, ("#effects-of-axes", "#frontier-of-runs"))
    yield Picture("tour/slices.png", every, ("#panel-slices",), open_fold)
    yield Picture("tour/by-query.png", list_compared([hybrid, reranked]), ("#by-query h2", "#by-query .bb-card"))
    yield Picture("tour/triage.png", f"{page}change/", ("#coverage", "#lost"))
    yield Picture("tour/demoted.png", f"{page}change/?cause=demoted+by+reranker", ("#queries",))
    yield Picture(
        "tour/path.png", f"/admin/benchmarks/queryresult/{query.pk}/change/", (".bb-facts", ".bb-panel:has(.bb-hits)")
    )
    yield Picture("tour/gate.png", f"{page}gate/", (".bb-gate", ".bb-gate ~ * table"), apply_gate)


def list_compared(runs: Any) -> str:
    from django.urls import reverse

    return f"{reverse('admin:run_compare')}?" + "&".join(f"run={run.pk}" for run in runs)


def open_fold(page: Any) -> None:
    page.click("details:has(#panel-slices) summary")


def apply_gate(page: Any) -> None:
    """Send the rules that the tour shows."""
    rules = re.search(r"```yaml\n(.*?)```", (DOCS / "tour.md").read_text(), re.DOTALL)
    assert rules
    page.click("#page_form details summary")
    page.fill("#id_rules_text", rules[1])
    page.click("#page_form [type=submit]")


def take(page: Any, blank: Any, root: str, picture: Picture) -> str:
    """Take a picture; return why that is impossible, or "". A `blank` page, without a policy, reads pixels."""
    from playwright.sync_api import Error

    file = DOCS / picture.file
    try:
        page.goto(root + picture.path)
        picture.prepare(page)
        for part in picture.parts:
            page.wait_for_selector(part, timeout=PATIENCE)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(SETTLED)
        boxes = [page.locator(part).first.bounding_box() for part in picture.parts]
        clip = surround(boxes) if boxes else None
        shot = page.screenshot(clip=clip, full_page=bool(boxes), animations="disabled")
        width, pixels = blank.evaluate(READ_PIXELS, base64.b64encode(shot).decode())
    except Error as error:
        return str(error).splitlines()[0]
    shot = write_palette(np.frombuffer(base64.b64decode(pixels), np.uint8).reshape(-1, width, 4))
    if len(shot) > MOST_BYTES:
        return f"it has {len(shot):,} bytes, more than {MOST_BYTES:,}"
    file.write_bytes(shot)
    print(f"{picture.file}: {len(shot):,} bytes")
    return ""


def write_palette(pixels: Any) -> bytes:
    """Return opaque pixels, rows × columns × 4, as a PNG of the 256 most frequent colours; others become the nearest.

    A page has few colours besides shades of its letters, and so its picture needs a third of the bytes.
    """
    height, width, _ = pixels.shape
    colours, inverse, counts = np.unique(
        pixels[:, :, :3].reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    palette = colours[np.argsort(-counts)[:256]]
    distances = ((colours[:, None].astype(np.int32) - palette[None].astype(np.int32)) ** 2).sum(axis=2)
    rows = distances.argmin(axis=1).astype(np.uint8)[inverse.reshape(-1)].reshape(height, width)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # 0: this line has no filter

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits a pixel, of a palette
    parts = ((b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(lines.tobytes(), 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in (*parts, (b"IEND", b"")))


def surround(boxes: list[dict[str, float]]) -> dict[str, float]:
    """Return the smallest rectangle around boxes, with a margin."""
    left, top = min(box["x"] for box in boxes) - MARGIN, min(box["y"] for box in boxes) - MARGIN
    right = max(box["x"] + box["width"] for box in boxes) + MARGIN
    bottom = max(box["y"] + box["height"] for box in boxes) + MARGIN
    return {"x": max(left, 0), "y": max(top, 0), "width": right - left, "height": bottom - top}


def take_all(browser: str, pictures: list[Picture]) -> dict[str, str]:
    """Serve the site, sign in and take pictures. Return the reason of each that is impossible, by file."""
    from playwright.sync_api import sync_playwright

    from apps.demo.management.commands.demo import HOST, USERNAME, find_port
    from benchbench.site.serving import give_login, serve_site

    password, port = give_login(USERNAME), find_port(8100)
    with serve_site(HOST, port, workers=1, environment={}), sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=browser, args=arguments)
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        blank, root = chromium.new_page(), f"http://127.0.0.1:{port}"
        page.goto(f"{root}/admin/login/")
        page.fill("#id_username", USERNAME)
        page.fill("#id_password", password)
        page.click("#login-form [type=submit]")
        left_out = {picture.file: take(page, blank, root, picture) for picture in pictures}
        chromium.close()
    return {file: reason for file, reason in left_out.items() if reason}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scifact", type=Path, default=ROOT.parent / "shared" / "data" / "scifact", metavar="DIR")
    parser.add_argument(
        "--vectors", type=Path, metavar="FILE", help="Import SciFact's vectors; times then exclude encoding."
    )
    parser.add_argument("--only", default="", metavar="NAME", help="Only pictures whose file has this in its name.")
    options = parser.parse_args()
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("There is no Chromium here: install one (Debian: apt-get install chromium), or name it in CHROMIUM.")
        return 1

    import django

    django.setup()

    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    pictures, left_out = list(make_demo()), {}
    if (options.scifact / "corpus.jsonl").exists():
        pictures += make_tour(options.scifact, options.vectors)
    else:
        left_out["tour/*.png"] = f"{options.scifact} holds no SciFact in BEIR's layout; name it with --scifact"
    left_out |= take_all(browser, [picture for picture in pictures if options.only in picture.file])
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
