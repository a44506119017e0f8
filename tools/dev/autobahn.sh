#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Autobahn test suite in build/autobahn, for tests/plugins/test_autobahn.py. It requires Python 2.7 with libraries
# from that era: pass the interpreter, or have python2.7 in PATH.
#
# Last results, November 2026, all without failures: on Duda's WebSockets, with callbacks and with receive loops, cases 1 to 7, 9
# and 10 (301 each); on the plugin 1 to 7, 9 and 10, and 1 to 7 and 10 also with an embedded server (libmonkey); on the plugin
# with compression, with and without context takeover, and on Duda's WebSockets with receive loops all cases of 12 and 13 (216
# each).
#
#   tools/dev/autobahn.sh [PYTHON]
set -eu
cd "$(dirname "$0")/../.."
python=${1:-python2.7}
folder=build/autobahn
command -v "$python" >/dev/null || { echo "there is no $python: name a Python 2.7, such as one of pyenv" >&2; exit 1; }
"$python" -m virtualenv --version >/dev/null 2>&1 || "$python" -m pip install --user virtualenv
"$python" -m virtualenv "$folder"
"$folder/bin/pip" install --no-deps autobahntestsuite==25.10.1
"$folder/bin/pip" install Twisted==19.10.0 txaio==2.1.0 autobahn==0.10.9 zope.interface==4.6.0 pyOpenSSL==19.1.0 \
  cryptography==3.3.2 jinja2==2.11.3 markupsafe==1.1.1 Werkzeug==1.0.1 klein==17.10.0 service_identity==18.1.0 \
  unittest2 six
"$folder/bin/pip" install wsaccel==0.6.2 # masking and UTF-8 validation in C, for cases 12 and 13
echo "MONKEY_AUTOBAHN=1 build/venv/bin/python -m pytest -c tests/pytest.ini tests/plugins/test_autobahn.py"
