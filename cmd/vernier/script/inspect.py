# Runs a program up to the point where it reads its command line, and writes the
# flags that it would understand to file descriptor 3, as JSON.
import json
import os
import runpy
import sys


# The names of positional arguments that the program requires.
words = []


def answer(source, flags):
    with os.fdopen(3, "w") as pipe:
        json.dump({"source": source, "flags": flags, "words": words}, pipe)
    sys.stdout.flush()
    os._exit(0)


def text(value):
    if value is None or callable(value):
        return ""
    if isinstance(value, (list, tuple, dict, set)):
        return ""
    return str(value)


def of_argparse(parser):
    import argparse

    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name in sys.argv[1:]:
                if name in action.choices:
                    found += of_argparse(action.choices[name])
            continue
        options = [o for o in action.option_strings if o not in ("-h", "--help")]
        if not action.option_strings and action.required and action.nargs in (None, "+"):
            words.append(action.dest)
        if not options or isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
            continue
        option = max(options, key=lambda o: (o.startswith("--"), -options.index(o)))
        kind = "bool" if action.nargs == 0 else {int: "int", float: "float"}.get(action.type, "")
        default = action.default if action.default is not argparse.SUPPRESS else None
        found.append({
            "option": option, "kind": kind, "default": text(default), "required": bool(action.required),
            "choices": [str(c) for c in action.choices or []] if not isinstance(action.choices, range) else [],
        })
    return found


def of_click(command):
    found = []
    for param in command.params:
        if getattr(param, "param_type_name", "") == "argument" and param.required and param.nargs in (1, -1) and not param.envvar:
            words.append(param.name)
        if getattr(param, "param_type_name", "") != "option" or "--help" in param.opts:
            continue
        option = max(param.opts, key=lambda o: o.startswith("--"))
        kind = {"integer": "int", "float": "float", "integer range": "int", "float range": "float"}.get(param.type.name, "")
        if getattr(param, "is_flag", False) or param.type.name == "boolean":
            kind = "bool"
        default = param.default if isinstance(param.default, (str, int, float)) else None
        found.append({
            "option": option, "kind": kind, "default": text(default), "required": bool(param.required),
            "choices": [str(getattr(c, "value", c)) for c in getattr(param.type, "choices", [])],
        })
    for name in sys.argv[1:]:
        if name in getattr(command, "commands", {}):
            found += of_click(command.commands[name])
    return found


def patch(source):
    import argparse

    def parse(self, args=None, *more, **kwargs):
        flags = of_argparse(self)
        if args is not None:  # not the command line as it is
            words.clear()
        answer("argparse", flags)

    argparse.ArgumentParser.parse_args = parse
    argparse.ArgumentParser.parse_known_args = parse
    if "click" in source or "typer" in source:
        try:
            import click
        except ImportError:
            return

        def main(self, *args, **kwargs):
            answer("click", of_click(self))

        getattr(click.core, "BaseCommand", click.Command).main = main
        click.Command.main = main


script = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(script))
with open(script, encoding="utf-8", errors="replace") as f:
    patch(f.read())
runpy.run_path(script, run_name="__main__")
