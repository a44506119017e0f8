-- SPDX-License-Identifier: Apache-2.0
function handle(r)
    r.content_type = "text/plain"
    r:write("@hello@")
    return apache2.OK
end
