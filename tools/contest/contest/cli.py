# SPDX-License-Identifier: Apache-2.0
"""The command line: `contest VERB ...`. Every verb is a module with add_arguments(parser) and main(options), imported only on
use, so that a missing library of one verb does not affect the others."""
import argparse
import importlib
import signal
import sys

from contest import VERSION
from contest.user_error import UserError, nearest

# verb: (module, description)
VERBS = {
    "list": ("contest.listing", "list the cases, and the contestants with the reason if one is absent"),
    "run": ("contest.run", "run the contest, or a part of it"),
    "report": ("contest.report", "write the report of a run: an HTML page, and a summary in Markdown"),
    "compare": ("contest.compare", "compare two runs: what became better or worse"),
    "spread": ("contest.spread", "run clients on several machines"),
    "arm": ("contest.arm", "run the case raspberry under emulation"),
}


def usage():
    verbs = "\n".join(f"  {verb:9} {about}" for verb, (_, about) in VERBS.items())
    return (f"usage: contest VERB [options]\n\nA neutral contest of web servers.\n\n{verbs}\n\n"
            "`contest VERB --help` says more. `contest --version` prints the version.\n")


def complain(text):
    print(f"contest: {text}", file=sys.stderr)


def call(verb, arguments):
    name, about = VERBS[verb]
    module = importlib.import_module(name)
    parser = argparse.ArgumentParser(prog=f"contest {verb}", description=module.__doc__ or about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_arguments(parser)
    return module.main(parser.parse_args(arguments)) or 0


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--version"]:
        print(VERSION)
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage(), end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] not in VERBS:
        complain(f"there is no verb {arguments[0]!r}{nearest(arguments[0], VERBS)}")
        return 2
    try:
        return call(arguments[0], arguments[1:])
    except UserError as complaint:
        complain(complaint)
        return complaint.code
    except ModuleNotFoundError as error:
        complain(f"{arguments[0]} needs the Python module {error.name}; "
                 "tools/contest/contest.sh runs the contest with all required modules")
        return 1
    except KeyboardInterrupt:
        complain("interrupted")
        return 128 + signal.SIGINT
    except BrokenPipeError:
        sys.stderr.close()
        return 1
