-- SPDX-License-Identifier: Apache-2.0
lighty.r.resp_header["Content-Type"] = "text/plain"
lighty.r.resp_body.set({ "@hello@" })
return 200
