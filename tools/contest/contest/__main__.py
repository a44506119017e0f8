# SPDX-License-Identifier: Apache-2.0
import sys

if sys.version_info < (3, 11):
    sys.exit(f"contest: needs Python 3.11 or later, but this is {sys.version.split()[0]}")

from contest.cli import main  # noqa: E402: after the check, because older versions of Python could not even parse the module

sys.exit(main())
