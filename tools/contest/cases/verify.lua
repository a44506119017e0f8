-- SPDX-License-Identifier: Apache-2.0
-- wrk compares every response with the file CONTEST_BODY, or, if CONTEST_PATHS is a list, with the files of that list below
-- CONTEST_ROOT, and prints the number of wrong responses at its end. wrk does not tell which request a response belongs to, so
-- each body must be that of a requested file with a pending response.
local threads, requests, bodies, at = {}, {}, {}, 0
local paths = os.getenv("CONTEST_PATHS")

local function content(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

function setup(thread)
    threads[#threads + 1] = thread
end

local function read_list()
    for path in io.lines(paths) do
        requests[#requests + 1] = wrk.format("GET", path)
        bodies[#bodies + 1] = content(os.getenv("CONTEST_ROOT") .. path)
        pending[bodies[#bodies]] = 0
    end
end

function init()
    verified, wrong, first, pending = 0, 0, "", {}
    if paths then
        read_list()
    else
        expected = content(os.getenv("CONTEST_BODY"))
    end
    io.stderr:write("ready\n")
end

if paths then
    function request()
        at = at % #requests + 1
        pending[bodies[at]] = pending[bodies[at]] + 1
        return requests[at]
    end
end

local function fits(body)
    if not paths then
        return body == expected
    end
    local count = pending[body] or 0
    pending[body] = count > 0 and count - 1 or pending[body]
    return count > 0
end

local function describe(status, body)
    if status ~= 200 then
        return "status " .. status
    elseif expected and #body ~= #expected then
        return #body .. " bytes instead of " .. #expected
    elseif expected then
        return "different content"
    end
    return #body .. " bytes that are none of the files asked for"
end

function response(status, headers, body)
    verified = verified + 1
    if status == 200 and fits(body) then
        return
    end
    if wrong == 0 then
        first = describe(status, body)
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
