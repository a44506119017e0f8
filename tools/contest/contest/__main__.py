# SPDX-License-Identifier: Apache-2.0
import sys

from contest.cli import main

sys.exit(main())
