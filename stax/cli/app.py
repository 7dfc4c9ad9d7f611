"""The commands and their options. Heavy imports happen inside commands, so that `stax --help` is quick."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stax.errors import InternalError, StaxError, StaxWarning, UserError


class _Commands(TyperGroup):
    """Shows errors of stax as text: exit code 2 where the user can help it, 1 where a run failed, 70 for our faults."""

    def invoke(self, ctx: Any) -> Any:
        warnings.showwarning = _show_warning
        try:
            return super().invoke(ctx)
        except StaxError as error:
            typer.echo(f"{type(error).__name__}: {error}", err=True)
            if isinstance(error, InternalError):
                typer.echo("this is a fault of stax: please report it", err=True)
                raise typer.Exit(70) from None
            raise typer.Exit(2 if isinstance(error, UserError) or _is_argument(error) else 1) from None


cache = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What was compiled and is kept on disk.")
app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="stax: array programs as functions of indices; schedules proved before they run.",
)

Program = Annotated[str, typer.Argument(metavar="FILE.py[:name]", help="a file that defines Funcs, and which of them")]
ScheduleFile = Annotated[Path | None, typer.Option("--schedule", help="a schedule, as `stax schedule` writes it")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="how many threads a call may use")]
Strict = Annotated[bool, typer.Option("--strict", help="fail where there is no machine code, instead of interpreting")]
Fp = Annotated[str | None, typer.Option("--fp", help="strict, default or fast")]


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="where the picture is written")] = Path("stax-demo.png"),
    threads: Threads = None,
    strict: Strict = True,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="how often each side is timed")] = 15,
) -> None:
    """Sharpen a photograph: write before and after, show the schedule, time it against NumPy, check it."""
    from stax.cli.demo import run_demo

    run_demo(out, threads, strict, rounds)


@app.command()
def doctor() -> None:
    """Look at what stax needs of this machine; exit code 1 where something is missing."""
    from stax.cli.doctor import examine

    if not examine():
        raise typer.Exit(1)


@app.command()
def run(
    program: Program,
    given: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="an array (.npy), an image, or the number of a Param"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=".npy, .npz or an image; else a summary")] = None,
    schedule: ScheduleFile = None,
    shape: Annotated[
        list[str] | None, typer.Option("--shape", help="extents such as 480,640: once for each output")
    ] = None,
    threads: Threads = None,
    fp: Fp = None,
    strict: Strict = False,
) -> None:
    """Compile a program and call it on files."""
    from stax.cli.run import run_program

    run_program(program, given or [], out, schedule, shape or [], threads, fp, strict)


@app.command()
def explain(
    program: Program,
    schedule: ScheduleFile = None,
    legality: Annotated[
        bool, typer.Option("--legality", help="show what was proved of the schedule, by what, and how long it took")
    ] = False,
    cut: Annotated[bool, typer.Option("--cut", help="show the loops as they are run: steady parts apart")] = False,
) -> None:
    """Show the schedule of a program, and its loops with their bounds and the bytes of their storage."""
    from stax.cli.programs import load_program, load_schedule
    from stax.compiler import explain as loops
    from stax.legality.report import report

    outputs = load_program(program).outputs
    chosen = load_schedule(schedule, outputs)
    if legality:
        typer.echo(f"{chosen}\n{report(chosen.pipeline, chosen.lines)[1]}")
        return
    typer.echo(f"{chosen}\n{loops(outputs, chosen, cut=cut)}")


@app.command()
def schedule(
    program: Program,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the file to write; else it is printed")] = None,
    default: Annotated[bool, typer.Option("--default", help="the schedule of who writes none")] = False,
) -> None:
    """Write the automatic schedule of a program, to be edited and given to `run` and `explain`."""
    from stax.cli.programs import load_program, write
    from stax.compiler import auto_schedule, default_schedule

    outputs = load_program(program).outputs
    text = str(default_schedule(outputs) if default else auto_schedule(outputs))
    if out is None:
        typer.echo(text)
    else:
        write(out, text.encode())
        typer.echo(f"wrote {out}")


@app.command()
def export(
    program: Program,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder and name: build/blur gives build/libblur.so, ...")],
    schedule: ScheduleFile = None,
    fp: Fp = None,
    library: Annotated[bool, typer.Option(help="link a shared library, with a loader; else the object alone")] = True,
) -> None:
    """Write a program as an object, a C header, a shared library and a loader that need nothing of stax."""
    from stax.aot.export import export as write_files
    from stax.aot.export import files_of
    from stax.cli.programs import load_program
    from stax.cli.programs import load_schedule as chosen
    from stax.compiler import compile as compile_

    outputs = load_program(program).outputs
    kernel = compile_(outputs, None if schedule is None else chosen(schedule, outputs), fp=fp, strict_native=True)
    for file in files_of(write_files(kernel, out, library=library)):
        typer.echo(f"wrote {file}")


CacheFolder = Annotated[Path | None, typer.Option("--folder", help="a folder other than the usual one")]
app.add_typer(cache, name="cache")


@cache.command()
def info(folder: CacheFolder = None) -> None:
    """Say where the cache is, how much of which kind is in it, and whether it can be used."""
    from stax.cli.cache import tell

    tell(folder)


@cache.command("ls")
def list_(
    folder: CacheFolder = None,
    most: Annotated[int, typer.Option("--most", min=1, help="how many to show, used last first")] = 20,
) -> None:
    """List entries: key, kind, bytes, and when they were used last."""
    from stax.cli.cache import show

    show(folder, most)


@cache.command()
def verify(folder: CacheFolder = None) -> None:
    """Look at each bit of each entry; remove what is damaged, and exit with 1 where something was."""
    from stax.cli.cache import check

    if check(folder):
        raise typer.Exit(1)


@cache.command()
def gc(
    folder: CacheFolder = None,
    most: Annotated[int, typer.Option("--most-mb", min=0, help="megabytes that may stay")] = 1 << 10,
) -> None:
    """Remove what was used least recently, until the rest fits, and what killed processes left."""
    from stax.cli.cache import collect

    collect(folder, most << 20)


@cache.command()
def clear(folder: CacheFolder = None) -> None:
    """Remove all entries."""
    from stax.cli.cache import collect

    collect(folder, 0)


@app.command()
def roofline(
    threads: Threads = None,
    again: Annotated[bool, typer.Option("--again", help="measure, where it was measured already")] = False,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="readings in each of two runs")] = 7,
) -> None:
    """Measure what memory gives and what the processor does at most; kept in the cache folder."""
    from stax.measure.roofline import roofline as measured

    typer.echo(str(measured(threads=threads, again=again, rounds=rounds)))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="b4: beside Halide; b5: time to compile; seed: S = rho * beta, beside NumPy; call; start; hand;"
            " imports; wavefronts; heat2d, seidel2d"
        ),
    ],
) -> None:
    """Run a benchmark of the source checkout; further options are its own."""
    from stax.cli.bench import run_bench

    raise typer.Exit(run_bench(name, list(ctx.args)))


def main() -> None:
    """Run the command line."""
    app(prog_name="stax")


def _is_argument(error: StaxError) -> bool:
    from stax.errors import ArgumentError

    return isinstance(error, ArgumentError)


def _show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    where = "" if issubclass(category, StaxWarning) else f" ({filename}:{lineno})"
    print(f"warning: {message}{where}", file=sys.stderr)
