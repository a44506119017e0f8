# SPDX-License-Identifier: Apache-2.0
"""Python's HTTP server for many simultaneous clients."""
import http.server


class PythonServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # with the default, 5, some of many simultaneous connections take a second or more
