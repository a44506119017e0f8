-- SPDX-License-Identifier: Apache-2.0
-- wrk asks for the paths in the file that CONTEST_PATHS names, one after the other, from a place of its own on.
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
