"""What benchmarks say of the machine and the commit, and how they write a table into a page of docs/."""

import datetime
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def circumstances(load):
    """Returns machine, date, commit, and the load averages before and after."""
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    if subprocess.run(["git", "-C", str(ROOT), "diff", "--quiet", "HEAD", "--"]).returncode != 0:
        commit += " with local changes"
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return (f"Machine: {os.cpu_count()} cores, {model}. Date: {datetime.datetime.now(datetime.timezone.utc).date()}. Commit: {commit}. "
            f"Load average before and after: {load[0]:.1f}, {load[1]:.1f}.")


def update_page(name, mark, text):
    """Replaces what stands between the two marker comments `mark` on the page docs/`name`."""
    begin, end = f"<!-- {mark}:begin", f"<!-- {mark}:end"
    path = ROOT / "docs" / name
    page = path.read_text()
    if begin not in page or end not in page:
        raise RuntimeError(f"{path} has lost its marker comments")
    head, rest = page.split(begin, 1)
    first_line, rest = rest.split("\n", 1)
    path.write_text(f"{head}{begin}{first_line}\n{text}{end}{rest.split(end, 1)[1]}")
    subprocess.run(["/usr/bin/python3", "-B", str(ROOT / "test" / "house" / "reflow.py"), str(path.relative_to(ROOT))], check=True, stdout=subprocess.DEVNULL)
