-- SPDX-License-Identifier: Apache-2.0
-- wrk pipelines 16 requests.
local requests

function init()
    requests = string.rep(wrk.format(), 16)
end

function request()
    return requests
end
