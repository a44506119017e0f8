-- SPDX-License-Identifier: Apache-2.0
-- wrk sends 16 requests at a time.
local requests

function init()
    requests = string.rep(wrk.format(), 16)
end

function request()
    return requests
end
