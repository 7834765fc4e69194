"""The table of tests/gpu: runs whatever can only be seen on a GPU, and says what came of it.

table.py FOLDER-OF-PROGRAMS FILE [--pretend]
"""

import collections
import concurrent.futures
import json
import os
import platform
import re
import subprocess
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
programs, file, *rest = sys.argv[1:]
PRETEND = rest == ["--pretend"]
GPU = "cpu" if PRETEND else "cuda"
# More processes would wait for each other: a GPU serves one at a time.
AT_A_TIME = min(len(os.sched_getaffinity(0)), 8)
SECONDS = 2 if PRETEND else 5  # for drawing cases, of a reference at a place
# Seconds that any of the programs may take, and that a component of Python may; a CPU is shared.
LONGEST, EACH = (900, 120) if PRETEND else (240, 40)
SHAPE = [1, 32, 32768] if PRETEND else [8, 2048, 32768]
CASES = 34

Row = collections.namedtuple("Row", "what place cases verdict seconds")

# What must find a planted bug, and a part of what it must say; then where, if not at f32, what else
# without a GPU (None: it needs one), and the name of the fault, where it has one on any device.
Planted = collections.namedtuple("Planted", "invariant says dtype pretended name")
PLANTED = {
    "result on the wrong device": Planted("well-formed", "where the inputs are", "f32", "", ""),
    "host reads a copy too early": Planted("oracle", "is 0, expected", "f32", None, ""),
    "stream that is not waited for": Planted("oracle", "is 0, expected", "f32", None, ""),
    "TF32 where f32 is declared": Planted("oracle", "expected", "f32", "", ""),
    "atomics in any order": Planted("deterministic", "the second", "f32", "", ""),
    "kernel that fails later": Planted(
        "does-not-crash", "device-side assert", "f32", ("does-not-raise", "out of bounds"), ""
    ),
    "out of memory": Planted("does-not-raise", "memory", "f32", "", ""),
    "log-softmax in bf16": Planted("oracle", "", "bf16", "", "log-softmax-in-half-precision"),
}


def run(*command, **settings):
    """What a program prints and its exit code."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, **settings
        )
    except subprocess.TimeoutExpired:
        return "", f"did not end within {LONGEST} s", None
    return done.stdout, done.stderr, done.returncode


def last_line(text):
    return (text.strip().splitlines() or ["nothing"])[-1]


def ask(what, place, *words):
    """One question to the program `gpu`."""
    begun = time.monotonic()
    said, error, code = run(os.path.join(programs, "gpu"), *words)
    cases, tab, verdict = said.rstrip("\n").partition("\t")
    if not tab:
        verdict = f"ended with {code}: {last_line(error)}"
    verdict = verdict if tab and code == 0 else f"FAILS: {verdict}"
    return [Row(what, place, cases, verdict, time.monotonic() - begun)]


def check(manifest, places, *words):
    """The components of a report of `shakedown check`; a text where there is none."""
    manifest = os.path.join(HERE, manifest)
    words = ["--places", ",".join(places), "--cases", str(CASES), "--jobs", "4", *words]
    words += ["--time", f"{EACH}s", "--json", "-"]
    said, error, code = run(os.path.join(programs, "shakedown"), "check", manifest, *words)
    try:
        return json.loads(said)["components"]
    except ValueError:
        return f"FAILS: ended with {code}: {last_line(error)}"


def found_in(component):
    """What keeps a component from passing, by invariant."""
    found = {finding["invariant"]: finding["found"] for finding in component["findings"]}
    if component["status"] not in ("pass", "fail"):
        found[component["status"]] = component["reason"] or "no reason"
    return found


def row_of(component, what, verdict):
    place, cases = component["place"], component["cases"]
    return Row(what, place, cases, verdict, component["elapsed_ms"] / 1000)


def summary(found):
    return "; ".join(f"{invariant}: {text.splitlines()[0]}" for invariant, text in found.items())


def right(kind, manifest, places, only=""):
    """One row for each component and place of a manifest, in which there are to be no findings."""
    components = check(manifest, places, *(["--only", only] if only else []))
    if isinstance(components, str):
        return [Row(f"{kind}: {manifest}", ", ".join(places), "", components, 0)]
    rows = []
    for component in components:
        found = found_in(component)
        passed = component["status"] == "pass" and not found and component["cases"]
        extent = "no finding" if component.get("cut") is None else "no finding before time was over"
        verdict = extent if passed else f"FAILS: {summary(found) or component['status']}"
        rows.append(row_of(component, f"{kind}: {component['name']}", verdict))
    return rows


def planted(name, bug):
    """The row of a bug that must be found, by one invariant at least and in these words."""
    what, place = f"planted: {name}", f"{GPU}/{bug.dtype}"
    invariant, says = bug.invariant, bug.says
    if PRETEND and bug.pretended is None:
        return [Row(what, "cuda/f32", "", "needs a GPU", 0)]
    if PRETEND and bug.pretended:
        invariant, says = bug.pretended
    components = check("planted.yaml", [place], "--component", name)
    if isinstance(components, str):
        return [Row(what, place, "", components, 0)]
    component, found = components[0], found_in(components[0])
    if invariant not in found or says not in found[invariant]:
        says = f" and `{says}`" if says else ""
        verdict = f"FAILS: expected {invariant}{says}, found {summary(found) or 'nothing'}"
        return [row_of(component, what, verdict)]
    faults = [one["diagnosis"] for one in component["findings"] if one["invariant"] == invariant]
    names = {one["fault"].split(" ")[0] for one in faults[0]}
    if bug.name and bug.name not in names:
        return [row_of(component, what, f"FAILS: found, not named {bug.name}: {names}")]
    named = f"named {', '.join(sorted(names))}" if names else "no name"
    return [row_of(component, what, f"found by {', '.join(found)}; {named}")]


def workers():
    """Processes that are forked, and a GPU that was used before: what works, what is refused."""
    kind = "workers"
    if PRETEND:
        names = ["module that uses CUDA at import", "module that asks for CUDA at import"]
        rows = [Row(f"{kind}: {name}", "cuda/f32, cpu/f32", "", "needs a GPU", 0) for name in names]
    else:
        # At the CPU too: there a worker forks itself, where its import has not used a GPU.
        rows = right(kind, "workers.yaml", ["cuda/f32", "cpu/f32"], "CUDA at import")
    name, says = "moves tensors to CUDA at a place of the CPU", "moves tensors to CUDA itself"
    components = check("workers.yaml", ["cpu/f32"], "--component", name)
    if isinstance(components, str):
        return [*rows, Row(f"{kind}: {name}", "cpu/f32", "", components, 0)]
    found = found_in(components[0])
    refused = says in found.get("does-not-raise", "")
    verdict = f"refused: {says}" if refused else f"FAILS: {summary(found) or 'no finding'}"
    return [*rows, row_of(components[0], f"{kind}: {name}", verdict)]


DRIVEN = """
import shakedown, torch

def kl(log_probs, ref_log_probs):
    log_ratio = log_probs.float() - ref_log_probs.float()
    return torch.expm1(-log_ratio) + log_ratio

torch.ones(1, device=PLACE.split("/")[0])
settings = {"places": [PLACE], "cases": 34, "isolate": ISOLATE}
print(shakedown.KlEstimate().settings(**settings).report(kl).status)
"""


def driven(isolate):
    """The package, in a process that has used the GPU, as a test of pytest is."""
    what = f"workers: a test{', isolate=True' if isolate else ''}, once CUDA is initialised"
    place = f"{GPU}/f32"
    if PRETEND and isolate:
        return [Row(what, "cuda/f32", "", "needs a GPU", 0)]
    path = os.pathsep.join([os.path.join(ROOT, "harness/python"), os.environ.get("PYTHONPATH", "")])
    settings = dict(os.environ, PYTHONPATH=path, SHAKEDOWN_BIN=os.path.join(programs, "shakedown"))
    program = f"PLACE, ISOLATE = {place!r}, {isolate}\n{DRIVEN}"
    begun = time.monotonic()
    said, error, _ = run(sys.executable, "-c", program, env=settings)
    expected = "isolate: CUDA is initialised in this process" if isolate else "pass"
    answer = last_line(error if isolate else said)
    verdict = f"refused: {expected}" if isolate else "no finding"
    if expected not in answer:
        verdict = f"FAILS: expected {expected}, found {answer}: {last_line(error)}"
    return [Row(what, place, "", verdict, time.monotonic() - begun)]


def tasks(listed):
    """All that may run beside each other, the longest first."""
    places = [f"{GPU}/{dtype}" for dtype in ("f32", "bf16", "f16")]
    for place in places:
        yield right, "python", "functions.yaml", [place]
    for name, bug in PLANTED.items():
        yield planted, name, bug
    yield (workers,)
    yield driven, False
    yield driven, True
    for kind, name in listed:
        if kind == "bug":
            yield ask, f"zoo: {name}", GPU, "bug", name, f"{GPU}/f32", str(LONGEST // 3)
    for kind, name in listed:
        if kind == "reference":
            for place in places:
                yield ask, f"tch: {name}", place, "reference", name, place, str(SECONDS)


def in_short(rows):
    """The rows of the historical bugs in one, with those that fail by themselves."""
    zoo = [row for row in rows if row.what.startswith("zoo: ")]
    failed = [row for row in zoo if row.verdict.startswith("FAILS")]
    cases, seconds = sum(int(row.cases or 0) for row in zoo), max(row.seconds for row in zoo)
    verdict = f"{len(zoo) - len(failed)} of {len(zoo)} found and named"
    summary = Row("zoo: historical bugs, where they show", GPU, cases, verdict, seconds)
    return [*(row for row in rows if row not in zoo), summary, *failed]


def heading():
    card, driver = platform.processor() or platform.machine(), "none"
    if not PRETEND:
        card = torch.cuda.get_device_name(0)
        query = ["nvidia-smi", "-i", "0", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = run(*query)[0].strip() or "unknown"
    what = "pretended on the CPU" if PRETEND else "seen"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return f"{card} · {what} · torch {torch.__version__} · driver {driver} · {day}"


def written(rows, seconds):
    lines = [heading(), "", "| what | place | cases | verdict | seconds |", "|---|---|---|---|---|"]
    lines += map(line, rows)
    failed = sum(row.verdict.startswith("FAILS") for row in rows)
    left = sum(row.verdict.startswith("needs a GPU") for row in rows)
    lines += ["", f"{failed} of {len(rows)} fail, {left} need a GPU; {seconds:.0f} s"]
    return "\n".join(lines) + "\n", failed


def line(row):
    verdict = re.sub(r"\s+", " ", row.verdict).replace("|", "/")[:300]
    return f"| {row.what} | {row.place} | {row.cases} | {verdict} | {row.seconds:.1f} |"


def main():
    begun = time.monotonic()
    listed = [line.split() for line in run(os.path.join(programs, "gpu"), "list")[0].splitlines()]
    # By itself, before anything else is on the GPU: what is measured is time and memory.
    rows, shape = [], [str(length) for length in SHAPE]

    def add(more):
        rows.extend(more)
        print(*map(line, more), sep="\n", file=sys.stderr, flush=True)

    for what in ("token-log-probs", "token-entropy", "policy-loss"):
        for dtype in ("f32", "bf16"):
            place = f"{GPU}/{dtype}"
            name = f"scale {' × '.join(shape)}: {what}"
            add(ask(name, place, "scale", what, place, *shape))
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        begin = [pool.submit(*task) for task in tasks(listed)]
        for done in concurrent.futures.as_completed(begin):
            add(done.result())
    rows = in_short(rows)
    texts = [f"tch: {name}" for kind, name in listed if kind == "none"]
    rows += [Row(name, "", "", "no reference on tensors", 0) for name in texts]
    text, failed = written(sorted(rows, key=lambda row: row.what), time.monotonic() - begun)
    print(text, end="")
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    sys.exit(1 if failed or not listed else 0)


main()
