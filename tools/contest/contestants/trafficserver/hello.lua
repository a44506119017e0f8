-- SPDX-License-Identifier: Apache-2.0
function do_remap()
    ts.http.set_resp(200, "@hello@")
    return 0
end
