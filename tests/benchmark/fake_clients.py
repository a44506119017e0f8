# SPDX-License-Identifier: Apache-2.0
"""Prints the output of load clients; each program has the name of a client that wr supports."""

WRK_OUTPUT = """Running 1s test @ http://127.0.0.1/
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   100.00us   10.00us   1.00ms   90.00%
    Req/Sec   100.00      1.00   100.00     90.00%
  Latency Distribution
     50%  100.00us
     75%  110.00us
     90%  120.00us
     99%  200.00us
  100 requests in 1.00s, 12.00KB read
Requests/sec:    100.00
Transfer/sec:     12.00KB
"""
PRINT_WRK = f"print({WRK_OUTPUT!r})\n"
