# SPDX-License-Identifier: Apache-2.0
"""A neutral contest of web servers: the same machine, the same work, and every response checked."""

VERSION = "2.0.0"
