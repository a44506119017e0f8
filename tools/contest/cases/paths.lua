-- SPDX-License-Identifier: Apache-2.0
-- wrk requests the paths listed in the file CONTEST_PATHS, one after the other.
local requests, at = {}, 0

function init()
    local file = assert(io.open(os.getenv("CONTEST_PATHS")))
    for path in file:lines() do
        requests[#requests + 1] = wrk.format("GET", path)
    end
    file:close()
end

function request()
    at = at % #requests + 1
    return requests[at]
end
