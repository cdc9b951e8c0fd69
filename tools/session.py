"""Draws docs/session.svg, the session at the top of the README: what the program prints, coloured as on a terminal.

    cargo build --release && python3 tools/session.py

Needs nothing but Python. Same program, same picture: another run gives no diff, and `--check` fails where there would
be one.
"""

import os
import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "docs/session.svg"
COMMANDS = ["ckpt-lint examples/unlisted-linear/broken", "ckpt-lint examples/unlisted-linear/mended"]
# A cell of the terminal, and what is around all of them.
WIDE, HIGH, SIZE, PAD, BAR = 8.4, 19, 14, 18, 34
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea"}


def session():
    """Lines of the session, with their colours."""
    program = os.environ.get("BIN", ROOT / "target/release/ckpt-lint")
    drop = ("NO_COLOR", "FORCE_HYPERLINK", "GITHUB_ACTIONS", "GITHUB_WORKSPACE")
    env = {k: v for k, v in os.environ.items() if k not in drop}
    out = []
    for command in COMMANDS:
        args = command.split()[1:] + ["--color", "always", "--no-config", "--format", "text"]
        ran = subprocess.run([program, *args], cwd=ROOT, env=env, capture_output=True, encoding="utf-8")
        if ran.returncode == 2:
            sys.exit(ran.stderr)
        out += [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", *ran.stdout.rstrip("\n").split("\n"), ""]
    return out[:-1]


def runs(line):
    """Column, text and class names of each piece of a line."""
    column, style = 0, {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            for code in [int(c or 0) for c in part[2:-1].split(";")]:
                if code == 0:
                    style = {}
                elif code in (1, 2, 4):
                    style[code] = {1: "b", 2: "d", 4: "u"}[code]
                elif code in COLOURS:
                    style["colour"] = f"c{code}"
            continue
        # A gap moves the next word and is no text: renderers differ on white space.
        for piece in re.split(r"(\s{2,}|^\s|\s$)", part):
            if piece.strip():
                yield column, piece, " ".join(style.values())
            column += len(piece)


def draw():
    lines = session()
    columns = max(sum(len(text) for text in re.split(r"\x1b\[[0-9;]*m", line)) for line in lines)
    width, height = round(columns * WIDE + 2 * PAD), len(lines) * HIGH + BAR + PAD
    classes = "".join(f".c{code}{{fill:{colour}}}" for code, colour in COLOURS.items())
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-label="ckpt-lint on a broken and on a mended checkpoint">',
        "<style>"
        f"text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3}}"
        f".b{{font-weight:bold}}.d{{opacity:.6}}.u{{text-decoration:underline}}{classes}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        *(f'<circle cx="{PAD + 18 * i}" cy="17" r="5.5" fill="#30363d"/>' for i in range(3)),
    ]
    for row, line in enumerate(lines):
        y = BAR + HIGH * row + SIZE
        for column, text, style in runs(line):
            # The length makes columns meet whatever font the reader has.
            x, length = PAD + column * WIDE, len(text) * WIDE
            kind = f' class="{style}"' if style else ""
            place = f'x="{x:.1f}" y="{y}" textLength="{length:.1f}"'
            svg.append(f"<text {place}{kind}>{escape(text)}</text>")
    return "\n".join(svg + ["</svg>", ""])


if __name__ == "__main__":
    picture = draw()
    if "--check" in sys.argv[1:]:
        there = OUT.read_text(encoding="utf-8") if OUT.exists() else ""
        sys.exit(None if there == picture else f"{OUT.name} is not current: tools/session.py draws it")
    OUT.write_text(picture, encoding="utf-8", newline="\n")
