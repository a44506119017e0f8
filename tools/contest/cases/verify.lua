-- SPDX-License-Identifier: Apache-2.0
-- wrk compares every answer with the file that CONTEST_BODY names, and says at its end how many were wrong.
local threads = {}

function setup(thread)
    threads[#threads + 1] = thread
end

function init()
    local file = assert(io.open(os.getenv("CONTEST_BODY"), "rb"))
    expected = file:read("*a")
    file:close()
    verified, wrong, first = 0, 0, ""
end

function response(status, headers, body)
    verified = verified + 1
    if status == 200 and body == expected then
        return
    end
    if wrong == 0 then
        if status ~= 200 then
            first = "status " .. status
        elseif #body ~= #expected then
            first = #body .. " bytes instead of " .. #expected
        else
            first = "other content"
        end
    end
    wrong = wrong + 1
end

function done()
    local all, bad, example = 0, 0, ""
    for _, thread in ipairs(threads) do
        all, bad = all + thread:get("verified"), bad + thread:get("wrong")
        if example == "" then
            example = thread:get("first")
        end
    end
    print(string.format("verified %d wrong %d first %s", all, bad, example))
end
